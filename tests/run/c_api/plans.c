/* Plans, requests and code. */
#include <stdio.h>

#include "c_api.h"

loom_linked* link_twice(void) {
  const char* const root = "twice";
  const char* const value = "@twice:n=4";
  loom_modules* inputs = loom_modules_create(context);
  loom_link_options options = {sizeof options};
  loom_linked* linked = NULL;
  options.roots.items = &root;
  options.roots.count = 1;
  options.specialize.items = &value;
  options.specialize.count = 1;
  OK(loom_modules_add_file(inputs, fixture, messages));
  OK(loom_link(inputs, NULL, &options, messages, &linked));
  loom_modules_destroy(inputs);
  return linked;
}

loom_plan* plan_twice(void) {
  loom_linked* linked = link_twice();
  loom_plan* plan = NULL;
  OK(loom_prepare(linked, NULL, messages, &plan));
  loom_linked_destroy(linked);
  return plan;
}

static void test_texts(loom_plan* plan) {
  loom_bytes text;
  OK(loom_plan_schedule_text(plan, 0, &text));
  REQUIRE(text.size > 18 && memcmp(text.data, "schedule of @twice", 18) == 0);
  OK(loom_plan_schedule_dot(plan, 0, &text));
  REQUIRE(text.size > 7 && memcmp(text.data, "digraph", 7) == 0);
  OK(loom_plan_artifact(plan, 0, &text));
  REQUIRE(text.size > 32 && memcmp(text.data, "LOOMCMD", 8) == 0);
  MISUSE(loom_plan_schedule_text(plan, 1, &text));
  REQUIRE(text.data == NULL && text.size == 0);
  MISUSE(loom_plan_schedule_dot(plan, 1, &text));
  MISUSE(loom_plan_artifact(plan, 1, &text));
  MISUSE(loom_plan_schedule_text(NULL, 0, &text));
  MISUSE(loom_plan_schedule_dot(NULL, 0, &text));
  MISUSE(loom_plan_artifact(NULL, 0, &text));
  MISUSE(loom_plan_schedule_text(plan, 0, NULL));
  MISUSE(loom_plan_schedule_dot(plan, 0, NULL));
  MISUSE(loom_plan_artifact(plan, 0, NULL));
}

/* The artifact again, from a file. */
static void test_opening(loom_plan* plan) {
  static const char path[] = "c_api_test.loomcmd";
  FILE* file = fopen(path, "wb");
  loom_plan* opened = NULL;
  loom_bytes artifact;
  loom_bytes again;
  OK(loom_plan_artifact(plan, 0, &artifact));
  REQUIRE(file != NULL && fwrite(artifact.data, 1, artifact.size, file) == artifact.size);
  fclose(file);
  OK(loom_plan_open(context, path, messages, &opened));
  REQUIRE(loom_plan_program_count(opened) == 1 && loom_plan_request_count(opened) == 0);
  OK(loom_plan_artifact(opened, 0, &again));
  REQUIRE(again.size == artifact.size && memcmp(again.data, artifact.data, again.size) == 0);
  loom_plan_destroy(opened);
  MISUSE(loom_plan_open(NULL, path, messages, &opened));
  MISUSE(loom_plan_open(context, NULL, messages, &opened));
  MISUSE(loom_plan_open(context, path, NULL, &opened));
  MISUSE(loom_plan_open(context, path, messages, NULL));
  FAILS(loom_plan_open(context, fixture, messages, &opened), "BINARY/002");
  remove(path);
  FAILS(loom_plan_open(context, path, messages, &opened), "IO/001");
  REQUIRE(opened == NULL);
}

void test_plans(void) {
  const char* const names[] = {"nobody", NULL};
  const loom_strings unknown = {names, 1};
  const loom_strings hole = {names, 2};
  loom_linked* linked = link_twice();
  loom_plan* plan = NULL;
  MISUSE(loom_prepare(NULL, NULL, messages, &plan));
  MISUSE(loom_prepare(linked, &hole, messages, &plan));
  MISUSE(loom_prepare(linked, NULL, NULL, &plan));
  MISUSE(loom_prepare(linked, NULL, messages, NULL));
  FAILS(loom_prepare(linked, &unknown, messages, &plan), "SYMBOL/002");
  MISUSE(loom_prepare(linked, NULL, messages, &plan)); /* it is used up */
  REQUIRE(plan == NULL);
  loom_linked_destroy(linked);
  plan = plan_twice();
  REQUIRE(loom_plan_program_count(plan) == 1 && loom_plan_program_count(NULL) == 0);
  test_texts(plan);
  test_opening(plan);
  loom_plan_destroy(plan);
  loom_plan_destroy(NULL);
}

typedef struct taken {
  loom_request* request;
  int accept;
  int commits;
  int cancels;
} taken;
static int take(void* user, loom_request* request) {
  taken* to = user;
  loom_request_destroy(to->request);
  to->request = request;
  return to->accept;
}
static void commit(void* user) { ++((taken*)user)->commits; }
static void cancel(void* user) { ++((taken*)user)->cancels; }

/* A request that was streamed serves the plan that needs it. */
static void test_streaming(void) {
  taken into = {NULL, 1, 0, 0};
  const loom_recipient recipient = {take, commit, cancel, &into};
  loom_prepare_options options = {sizeof options};
  loom_compile_options compile = {sizeof compile};
  loom_kernel_request view = {sizeof view};
  loom_linked* linked = link_twice();
  loom_plan* plan = NULL;
  loom_code* code = NULL;
  loom_executables* executables = NULL;
  options.recipient = &recipient;
  options.workspace = loom_workspace_create();
  OK(loom_prepare_with(linked, &options, messages, &plan));
  REQUIRE(into.request != NULL && into.commits == 1 && into.cancels == 0);
  REQUIRE(loom_plan_request_count(plan) == 0);
  OK(loom_request_view(into.request, &view));
  REQUIRE(equal(view.symbol, "scale") && equal(view.export_name, "scale") && view.ordinal == 0);
  compile.fast = 2; /* of one request: the least compile time */
  compile.workspace = options.workspace;
  OK(loom_compile_request(&view, &compile, messages, &code));
  OK(loom_assemble(plan, (const loom_code* const*)&code, 1, NULL, messages, &executables));
  loom_executables_destroy(executables);
  MISUSE(loom_assemble(NULL, NULL, 0, NULL, messages, &executables));
  MISUSE(loom_assemble(plan, NULL, 1, NULL, messages, &executables));
  MISUSE(loom_assemble(plan, NULL, 0, NULL, NULL, &executables));
  MISUSE(loom_assemble(plan, NULL, 0, NULL, messages, NULL));
  loom_code_destroy(code);
  MISUSE(loom_request_view(NULL, &view));
  MISUSE(loom_request_view(into.request, NULL));
  loom_plan_destroy(plan);
  loom_linked_destroy(linked);
  loom_workspace_destroy(options.workspace);

  linked = link_twice();
  into.accept = 0;
  options.workspace = NULL;
  REQUIRE(loom_prepare_with(linked, &options, messages, &plan) == LOOM_FAILED && plan == NULL);
  REQUIRE(into.commits == 1 && into.cancels == 1);
  loom_request_destroy(into.request);
  loom_linked_destroy(linked);
}

void test_requests(void) {
  const loom_recipient nobody = {NULL, commit, cancel, NULL};
  loom_prepare_options options = {sizeof options};
  loom_linked* linked = link_twice();
  loom_kernel_request request = {sizeof request};
  loom_plan* plan = NULL;
  test_streaming();
  options.recipient = &nobody;
  MISUSE(loom_prepare_with(linked, &options, messages, &plan));
  options.recipient = NULL;
  options.struct_size = 0;
  MISUSE(loom_prepare_with(linked, &options, messages, &plan));
  options.struct_size = sizeof options;
  options.plan_only = 1;
  MISUSE(loom_prepare_with(NULL, &options, messages, &plan));
  MISUSE(loom_prepare_with(linked, &options, NULL, &plan));
  MISUSE(loom_prepare_with(linked, &options, messages, NULL));
  OK(loom_prepare_with(linked, &options, messages, &plan));
  REQUIRE(loom_plan_request_count(plan) == 0 && loom_plan_request_count(NULL) == 0);
  MISUSE(loom_plan_request(plan, 0, &request));
  loom_plan_destroy(plan);
  loom_linked_destroy(linked);
  plan = plan_twice();
  OK(loom_plan_request(plan, 0, &request));
  REQUIRE(equal(request.symbol, "scale") && request.bytecode.size > 0);
  MISUSE(loom_plan_request(NULL, 0, &request));
  MISUSE(loom_plan_request(plan, 0, NULL));
  loom_plan_destroy(plan);
  loom_request_destroy(NULL);
  loom_workspace_destroy(NULL);
}

/* Whatever the bytes of a request are, compiling it ends with a message. */
static void test_bad_requests(loom_plan* plan) {
  loom_kernel_request request = {sizeof request};
  loom_code* code = NULL;
  OK(loom_plan_request(plan, 0, &request));
  request.symbol.data = "other";
  FAILS(loom_compile_request(&request, NULL, messages, &code), "SYMBOL/002");
  OK(loom_plan_request(plan, 0, &request));
  request.bytecode.size -= 1;
  FAILS(loom_compile_request(&request, NULL, messages, &code), "BINARY/002");
  request.bytecode.data = "kernel.def";
  request.bytecode.size = 10;
  FAILS(loom_compile_request(&request, NULL, messages, &code), "PARSE/");
  request.bytecode.data = NULL;
  MISUSE(loom_compile_request(&request, NULL, messages, &code));
  OK(loom_plan_request(plan, 0, &request));
  MISUSE(loom_compile_request(NULL, NULL, messages, &code));
  MISUSE(loom_compile_request(&request, NULL, NULL, &code));
  MISUSE(loom_compile_request(&request, NULL, messages, NULL));
  request.struct_size = 0;
  MISUSE(loom_compile_request(&request, NULL, messages, &code));
  REQUIRE(code == NULL);
}

void test_code(void) {
  loom_external_entry entry = {"scale", NULL, "no.so", NULL};
  loom_compile_options options = {sizeof options};
  loom_plan* plan = plan_twice();
  loom_executables* executables = NULL;
  test_bad_requests(plan);
  options.externals = &entry;
  options.external_count = 1;
  FAILS(loom_compile(plan, &options, messages, &executables), "IO/001");
  FAILS(loom_assemble(plan, NULL, 0, &options, messages, &executables), "IO/001");
  entry.symbol = "nobody";
  FAILS(loom_compile(plan, &options, messages, &executables), "RUN/045");
  entry.symbol = NULL;
  MISUSE(loom_compile(plan, &options, messages, &executables));
  options.externals = NULL;
  MISUSE(loom_compile(plan, &options, messages, &executables));
  MISUSE(loom_assemble(plan, NULL, 0, &options, messages, &executables));
  options.external_count = 0;
  /* A folder that cannot be used is a warning. */
  options.fast = 1;
  options.cache_folder = fixture;
  OK(loom_compile(plan, &options, messages, &executables));
  REQUIRE(strstr(loom_messages_text(messages), "RUN/040") != NULL);
  loom_messages_clear(messages);
  loom_executables_destroy(executables);
  options.fast = 2;
  options.cache_folder = NULL;
  OK(loom_compile(plan, &options, messages, &executables));
  loom_executables_destroy(executables);
  options.struct_size = 0;
  MISUSE(loom_compile(plan, &options, messages, &executables));
  MISUSE(loom_compile(NULL, NULL, messages, &executables));
  MISUSE(loom_compile(plan, NULL, NULL, &executables));
  MISUSE(loom_compile(plan, NULL, messages, NULL));
  REQUIRE(executables == NULL);
  loom_plan_destroy(plan);
  loom_executables_destroy(NULL);
  loom_code_destroy(NULL);
}
