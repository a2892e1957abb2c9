/* The C API, used from C: c_api_test scale.loom. Exit status 0 when every step did what it says. */
#include <loom/api/loom_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static loom_messages* messages;

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "c_api_test: %s\n%s", what, loom_messages_text(messages));
  fflush(stderr);
  /* Nothing is worth going on for. */
  _Exit(1);
}

static int equal(loom_bytes bytes, const char* text) {
  return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

/* The parameter comes from a file in memory order: written beside the test's own working folder. */
static const char* write_weights(void) {
  static const char header[] =
      "{\"w\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32]}}   ";
  static const char* path = "c_api_test.safetensors";
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const uint64_t size = sizeof(header) - 1;
  FILE* file = fopen(path, "wb");
  if (file == NULL) return NULL;
  fwrite(&size, sizeof(size), 1, file);
  fwrite(header, 1, size, file);
  fwrite(values, sizeof(values), 1, file);
  fclose(file);
  return path;
}

static loom_plan* plan_of(loom_context* context, const char* path) {
  const char* const root = "twice";
  const char* const value = "@twice:n=4";
  loom_modules* inputs = loom_modules_create(context);
  loom_modules* none = loom_modules_create(context);
  loom_library* library = loom_library_create(none);
  loom_link_options options;
  loom_linked* linked = NULL;
  loom_plan* plan = NULL;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.roots.items = &root;
  options.roots.count = 1;
  options.specialize.items = &value;
  options.specialize.count = 1;
  require(loom_modules_add_bytes(inputs, "%", 1, "bad", messages) == LOOM_FAILED,
          "bad text is read");
  require(strstr(loom_messages_json(messages), "\"file\":\"bad\"") != NULL, "no place in the JSON");
  loom_messages_clear(messages);
  require(loom_modules_add_file(inputs, path, messages) == LOOM_OK, "the module is not read");
  require(loom_link(inputs, library, &options, messages, &linked) == LOOM_OK, "no link");
  require(loom_prepare(linked, NULL, messages, &plan) == LOOM_OK, "no plan");
  loom_plan_destroy(plan);
  require(loom_prepare(linked, NULL, messages, &plan) == LOOM_MISUSE, "a module is used up");
  require(plan == NULL, "misuse gives no plan");
  loom_linked_destroy(linked);
  require(loom_link(inputs, NULL, &options, messages, &linked) == LOOM_OK, "no second link");
  require(loom_prepare(linked, &options.roots, messages, &plan) == LOOM_OK, "no second plan");
  loom_linked_destroy(linked);
  loom_library_destroy(library);
  loom_modules_destroy(none);
  loom_modules_destroy(inputs);
  return plan;
}

static loom_program* program_of(loom_plan* plan) {
  loom_compile_options options;
  loom_executables* executables = NULL;
  loom_program* program = NULL;
  loom_parameters* parameters = loom_parameters_create();
  loom_device* device = loom_device_create_cpu(1);
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.fast = 1;
  require(loom_compile(plan, &options, messages, &executables) == LOOM_OK, "no code");
  require(loom_materialize(device, plan, 0, executables, NULL, messages, &program) == LOOM_FAILED,
          "a program without its parameters");
  loom_messages_clear(messages);
  require(loom_parameters_open(parameters, write_weights(), "params", messages) == LOOM_OK,
          "no parameters");
  require(
      loom_materialize(device, plan, 1, executables, parameters, messages, &program) == LOOM_MISUSE,
      "a second program");
  require(loom_materialize(device, plan, 0, executables, parameters, messages, &program) == LOOM_OK,
          "no program");
  loom_device_destroy(device);
  loom_parameters_destroy(parameters);
  loom_executables_destroy(executables);
  return program;
}

static void profile_test(loom_invocation* invocation, const loom_program* program) {
  loom_profile* profile = loom_profile_create(program);
  loom_profiled_command command = {sizeof(command)};
  loom_profiled_operand operand = {sizeof(operand)};
  loom_profiled_dispatch dispatch = {sizeof(dispatch)};
  loom_bytes text;
  require(loom_profile_dispatch_count(profile) == 0 && loom_profile_duration(profile) == 0,
          "a profile of nothing");
  require(loom_issue_profiled(invocation, profile, messages) == LOOM_OK, "not profiled");
  require(loom_profile_command_count(profile) == 2 &&
              loom_profile_command(profile, 1, &command) == LOOM_OK &&
              equal(command.kernel, "scale") && command.node == 2 && command.wave == 1 &&
              command.operand_count == 3 && command.workgroup_size[0] == 1 && command.line != 0,
          "no command");
  require(loom_profile_operand(profile, 1, 0, &operand) == LOOM_OK &&
              operand.storage == LOOM_PARAMETER && equal(operand.name, "w") && operand.bytes == 32,
          "no operand");
  require(loom_profile_dispatch_count(profile) == 2 &&
              loom_profile_dispatch(profile, 1, &dispatch) == LOOM_OK && dispatch.command == 1 &&
              dispatch.grid[0] == 4 && dispatch.end <= loom_profile_duration(profile),
          "no dispatch");
  require(loom_profile_command(profile, 2, &command) == LOOM_MISUSE &&
              loom_profile_operand(profile, 2, 0, &operand) == LOOM_MISUSE &&
              loom_profile_operand(profile, 1, 3, &operand) == LOOM_MISUSE &&
              loom_profile_dispatch(profile, 2, &dispatch) == LOOM_MISUSE,
          "rows past the end");
  require(loom_profile_chrome_trace(profile, &text) == LOOM_OK && text.size > 100, "no trace");
  loom_profile_destroy(profile);
}

/* The artifact again, from a file. */
static void check_opened(loom_context* context, loom_bytes artifact) {
  static const char* path = "c_api_test.loomcmd";
  FILE* file = fopen(path, "wb");
  loom_plan* opened = NULL;
  loom_bytes again;
  require(file != NULL && fwrite(artifact.data, 1, artifact.size, file) == artifact.size,
          "the artifact is not written");
  fclose(file);
  require(loom_plan_open(context, path, messages, &opened) == LOOM_OK, "no opened plan");
  remove(path);
  require(loom_plan_program_count(opened) == 1 && loom_plan_request_count(opened) == 0 &&
              loom_plan_artifact(opened, 0, &again) == LOOM_OK && again.size == artifact.size &&
              memcmp(again.data, artifact.data, again.size) == 0,
          "another plan");
  loom_plan_destroy(opened);
  require(loom_plan_open(context, path, messages, &opened) == LOOM_FAILED && opened == NULL,
          "a plan from nowhere");
  loom_messages_clear(messages);
}

int main(int argc, char** argv) {
  float input[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  float output[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const float expected[8] = {1, 4, 9, 16, -1, -1, -1, -1};
  loom_context* context = loom_context_create();
  loom_plan* plan;
  loom_program* program;
  loom_invocation* invocation;
  loom_bytes text;
  loom_kernel_request request;
  loom_binding binding;
  messages = loom_messages_create(context);
  require(argc == 2, "usage: c_api_test scale.loom");
  require(loom_abi_version() >= LOOM_ABI_VERSION, "an older library");

  plan = plan_of(context, argv[1]);
  require(loom_plan_program_count(plan) == 1, "not one program");
  require(loom_plan_schedule_text(plan, 0, &text) == LOOM_OK && text.size > 0, "no schedule");
  require(loom_plan_artifact(plan, 0, &text) == LOOM_OK && memcmp(text.data, "LOOMCMD", 7) == 0,
          "no artifact");
  request.struct_size = sizeof(request);
  require(loom_plan_request_count(plan) == 1 && loom_plan_request(plan, 0, &request) == LOOM_OK &&
              equal(request.symbol, "scale") && request.bytecode.size > 0,
          "no request");

  check_opened(context, text);

  program = program_of(plan);
  loom_plan_destroy(plan);
  /* A caller that was compiled against a shorter struct gets what fits. */
  memset(&binding, 0xff, sizeof(binding));
  binding.struct_size = offsetof(loom_binding, least_size);
  require(loom_program_binding_count(program) == 2 &&
              loom_program_binding(program, 1, &binding) == LOOM_OK && binding.ordinal == 2 &&
              equal(binding.name, "output") && binding.least_size == UINT64_MAX,
          "no binding");

  invocation = loom_invocation_create(program);
  require(loom_bind(invocation, 1, input, sizeof(input), messages) == LOOM_OK, "no input");
  require(loom_issue(invocation, messages) == LOOM_FAILED, "issued without storage");
  require(strstr(loom_messages_text(messages), "RUN/003") != NULL, "another failure");
  require(loom_bind_name(invocation, "output", output, 31, messages) == LOOM_FAILED, "too small");
  loom_messages_clear(messages);
  require(loom_bind_name(invocation, "output", output, sizeof(output), messages) == LOOM_OK,
          "no output");
  require(loom_issue(invocation, messages) == LOOM_OK, "not issued");
  require(memcmp(output, expected, sizeof(output)) == 0, "wrong numbers");
  require(!loom_messages_has_errors(messages), "errors after success");

  profile_test(invocation, program);
  loom_program_destroy(program);
  loom_invocation_destroy(invocation);
  loom_messages_destroy(messages);
  loom_context_destroy(context);
  remove("c_api_test.safetensors");
  return 0;
}
