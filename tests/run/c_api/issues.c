/* Parameters, storage, programs, issues, completions and profiles. */
#include <loom/target/x86/kernel_abi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

#include "c_api.h"

static const char kWeights[] = "c_api_test.safetensors";

/* The parameter comes from a file in memory order, beside the test's own working folder. */
static loom_parameters* weights(void) {
  static const char header[] =
      "{\"w\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32]}}   ";
  const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const uint64_t size = sizeof header - 1;
  loom_parameters* parameters = loom_parameters_create();
  FILE* file = fopen(kWeights, "wb");
  REQUIRE(file != NULL);
  fwrite(&size, sizeof size, 1, file);
  fwrite(header, 1, size, file);
  fwrite(values, sizeof values, 1, file);
  fclose(file);
  OK(loom_parameters_open(parameters, kWeights, "params", messages));
  remove(kWeights); /* it is mapped */
  return parameters;
}

static loom_executables* code_of(const loom_plan* plan) {
  loom_compile_options options = {sizeof options};
  loom_executables* executables = NULL;
  options.fast = 1;
  OK(loom_compile(plan, &options, messages, &executables));
  return executables;
}

loom_program* program_twice(const loom_device* device) {
  loom_plan* plan = plan_twice();
  loom_executables* executables = code_of(plan);
  loom_parameters* parameters = weights();
  loom_program* program = NULL;
  OK(loom_materialize(device, plan, 0, executables, parameters, messages, &program));
  loom_parameters_destroy(parameters);
  loom_executables_destroy(executables);
  loom_plan_destroy(plan);
  return program;
}

void test_parameters(void) {
  loom_parameters* parameters = loom_parameters_create();
  FAILS(loom_parameters_open(parameters, "nowhere.gguf", NULL, messages), "nowhere.gguf");
  FAILS(loom_parameters_open(parameters, fixture, "params", messages), "RUN/006");
  MISUSE(loom_parameters_open(NULL, fixture, NULL, messages));
  MISUSE(loom_parameters_open(parameters, NULL, NULL, messages));
  MISUSE(loom_parameters_open(parameters, fixture, NULL, NULL));
  loom_parameters_destroy(parameters);
  loom_parameters_destroy(NULL);
}

void test_storage(void) {
  loom_device* device = loom_device_create_cpu(1);
  loom_storage* own = loom_storage_allocate(device, 64);
  char bytes[16];
  loom_storage* imported = loom_storage_import(device, bytes, sizeof bytes);
  loom_storage* empty = loom_storage_import(device, NULL, 0);
  REQUIRE(own != NULL && loom_storage_size(own) == 64);
  REQUIRE(((const char*)loom_storage_pointer(own))[63] == 0);
  REQUIRE(loom_storage_pointer(imported) == bytes && loom_storage_size(imported) == sizeof bytes);
  REQUIRE(empty != NULL && loom_storage_size(empty) == 0);
  REQUIRE(loom_storage_allocate(device, SIZE_MAX / 2) == NULL);
  REQUIRE(loom_storage_allocate(NULL, 1) == NULL);
  REQUIRE(loom_storage_import(NULL, bytes, 1) == NULL);
  REQUIRE(loom_storage_import(device, NULL, 1) == NULL);
  REQUIRE(loom_storage_pointer(NULL) == NULL && loom_storage_size(NULL) == 0);
  loom_device_destroy(device);
  loom_storage_destroy(own);
  loom_storage_destroy(imported);
  loom_storage_destroy(empty);
  loom_storage_destroy(NULL);
  loom_device_destroy(NULL);
}

void test_programs(void) {
  loom_device* device = loom_device_create_cpu(1);
  loom_plan* plan = plan_twice();
  loom_plan* twin = plan_twice();
  loom_executables* code = code_of(plan);
  loom_program* program = NULL;
  loom_binding binding;
  FAILS(loom_materialize(device, plan, 0, code, NULL, messages, &program), "RUN/004");
  MISUSE(loom_materialize(NULL, plan, 0, code, NULL, messages, &program));
  MISUSE(loom_materialize(device, NULL, 0, code, NULL, messages, &program));
  MISUSE(loom_materialize(device, plan, 1, code, NULL, messages, &program));
  MISUSE(loom_materialize(device, plan, 0, NULL, NULL, messages, &program));
  MISUSE(loom_materialize(device, twin, 0, code, NULL, messages, &program));
  MISUSE(loom_materialize(device, plan, 0, code, NULL, NULL, &program));
  MISUSE(loom_materialize(device, plan, 0, code, NULL, messages, NULL));
  REQUIRE(program == NULL);
  program = program_twice(device);
  REQUIRE(loom_program_binding_count(program) == 2 && loom_program_binding_count(NULL) == 0);
  /* A caller that was compiled against a shorter struct gets what fits. */
  memset(&binding, 0xff, sizeof binding);
  binding.struct_size = offsetof(loom_binding, least_size);
  OK(loom_program_binding(program, 1, &binding));
  REQUIRE(binding.ordinal == 2 && equal(binding.name, "output"));
  REQUIRE(binding.least_size == UINT64_MAX);
  binding.struct_size = sizeof binding;
  OK(loom_program_binding(program, 1, &binding));
  REQUIRE(binding.least_size == 32 && binding.alignment == 4);
  MISUSE(loom_program_binding(program, 2, &binding));
  MISUSE(loom_program_binding(NULL, 0, &binding));
  MISUSE(loom_program_binding(program, 0, NULL));
  binding.struct_size = 0;
  MISUSE(loom_program_binding(program, 0, &binding));
  loom_program_destroy(program);
  loom_program_destroy(NULL);
  loom_executables_destroy(code);
  loom_plan_destroy(twin);
  loom_plan_destroy(plan);
  loom_device_destroy(device);
}

static const float kExpected[8] = {1, 4, 9, 16, -1, -1, -1, -1};
typedef struct numbers {
  float input[8];
  float output[8];
} numbers;
static const numbers kStart = {{1, 1, 1, 1, 1, 1, 1, 1}, {-1, -1, -1, -1, -1, -1, -1, -1}};

static int is_done(const numbers* of) {
  return memcmp(of->output, kExpected, sizeof kExpected) == 0;
}

static loom_invocation* bound_to(const loom_program* program, numbers* to) {
  loom_invocation* invocation = loom_invocation_create(program);
  *to = kStart;
  OK(loom_bind(invocation, 1, to->input, sizeof to->input, messages));
  OK(loom_bind_name(invocation, "output", to->output, sizeof to->output, messages));
  return invocation;
}

static void test_binding(loom_invocation* invocation, numbers* data, const loom_device* device) {
  loom_device* other = loom_device_create_cpu(1);
  loom_storage* storage = loom_storage_import(device, data->output, sizeof data->output);
  loom_storage* strange = loom_storage_import(other, data->output, sizeof data->output);
  FAILS(loom_bind(invocation, 7, data->input, 32, messages), "RUN/011");
  FAILS(loom_bind(invocation, 1, NULL, 0, messages), "RUN/002");
  FAILS(loom_bind_name(invocation, "output", data->output, 31, messages), "RUN/002");
  FAILS(loom_bind_name(invocation, "nobody", data->output, 32, messages), "RUN/011");
  FAILS(loom_bind_name(invocation, "output", (char*)data->output + 1, 32, messages), "RUN/010");
  OK(loom_bind_storage(invocation, 2, storage, messages));
  FAILS(loom_bind_storage(invocation, 7, storage, messages), "RUN/011");
  MISUSE(loom_bind_storage(invocation, 2, strange, messages));
  MISUSE(loom_bind_storage(NULL, 2, storage, messages));
  MISUSE(loom_bind_storage(invocation, 2, NULL, messages));
  MISUSE(loom_bind_storage(invocation, 2, storage, NULL));
  MISUSE(loom_bind(NULL, 1, data->input, 32, messages));
  MISUSE(loom_bind(invocation, 1, NULL, 32, messages));
  MISUSE(loom_bind(invocation, 1, data->input, 32, NULL));
  MISUSE(loom_bind_name(NULL, "output", data->output, 32, messages));
  MISUSE(loom_bind_name(invocation, NULL, data->output, 32, messages));
  MISUSE(loom_bind_name(invocation, "output", NULL, 32, messages));
  MISUSE(loom_bind_name(invocation, "output", data->output, 32, NULL));
  loom_storage_destroy(storage);
  loom_storage_destroy(strange);
  loom_device_destroy(other);
}

void test_issues(void) {
  loom_device* device = loom_device_create_cpu(1);
  loom_program* program = program_twice(device);
  loom_invocation* invocation = loom_invocation_create(program);
  numbers data;
  FAILS(loom_issue(invocation, messages), "RUN/003");
  loom_invocation_destroy(invocation);
  invocation = bound_to(program, &data);
  loom_program_destroy(program);
  test_binding(invocation, &data, device);
  loom_device_destroy(device);
  OK(loom_issue(invocation, messages));
  REQUIRE(is_done(&data));
  MISUSE(loom_issue(NULL, messages));
  MISUSE(loom_issue(invocation, NULL));
  REQUIRE(loom_invocation_create(NULL) == NULL);
  loom_invocation_destroy(invocation);
  loom_invocation_destroy(NULL);
}

/* A kernel of the application that waits until it may end. */
static atomic_int entered;
static atomic_int may_end;
static void wait_in_kernel(const uint64_t* args, const LoomDispatchShape* shape, uint64_t begin,
                           uint64_t end) {
  (void)args, (void)shape, (void)begin, (void)end;
  atomic_store(&entered, 1);
  while (!atomic_load(&may_end)) thrd_yield();
}

static loom_program* waiting_program(const loom_device* device) {
  const LoomKernelEntry function = wait_in_kernel;
  loom_external_entry entry = {"scale", NULL, NULL, NULL};
  loom_compile_options options = {sizeof options};
  loom_parameters* parameters = weights();
  loom_plan* plan = plan_twice();
  loom_executables* code = NULL;
  loom_program* program = NULL;
  memcpy(&entry.function, &function, sizeof function);
  options.externals = &entry;
  options.external_count = 1;
  OK(loom_compile(plan, &options, messages, &code));
  OK(loom_materialize(device, plan, 0, code, parameters, messages, &program));
  loom_parameters_destroy(parameters);
  loom_executables_destroy(code);
  loom_plan_destroy(plan);
  return program;
}

/* While an issue is in flight nothing else may be done with its invocation. */
static void test_in_flight(const loom_device* device) {
  loom_program* program = waiting_program(device);
  loom_profile* profile = loom_profile_create(program);
  loom_completion* completion = NULL;
  loom_completion* second = NULL;
  numbers data;
  loom_invocation* invocation = bound_to(program, &data);
  loom_storage* storage = loom_storage_allocate(device, 32);
  OK(loom_issue_start(invocation, NULL, NULL, &completion));
  while (!atomic_load(&entered)) thrd_yield();
  REQUIRE(!loom_completion_done(completion));
  MISUSE(loom_bind(invocation, 1, data.input, 32, messages));
  MISUSE(loom_bind_name(invocation, "input", data.input, 32, messages));
  MISUSE(loom_bind_storage(invocation, 1, storage, messages));
  MISUSE(loom_issue(invocation, messages));
  MISUSE(loom_issue_profiled(invocation, profile, messages));
  MISUSE(loom_issue_start(invocation, NULL, NULL, &second));
  REQUIRE(second == NULL);
  atomic_store(&may_end, 1);
  OK(loom_completion_wait(completion, messages));
  loom_storage_destroy(storage);
  loom_completion_destroy(completion);
  loom_invocation_destroy(invocation);
  loom_profile_destroy(profile);
  loom_program_destroy(program);
}

/* A callback starts the invocation again. */
typedef struct chain {
  loom_invocation* invocation;
  loom_completion* second;
  atomic_int started;
} chain;
static void start_second(void* user) {
  chain* of = user;
  OK(loom_issue_start(of->invocation, NULL, NULL, &of->second));
  atomic_store(&of->started, 1);
}

void test_completions(void) {
  loom_device* device = loom_device_create_cpu(1);
  loom_program* program = program_twice(device);
  loom_invocation* unbound = loom_invocation_create(program);
  loom_completion* completion = NULL;
  numbers data;
  chain next = {bound_to(program, &data), NULL, 0};
  OK(loom_issue_start(next.invocation, start_second, &next, &completion));
  OK(loom_completion_wait(completion, messages));
  REQUIRE(loom_completion_done(completion));
  loom_completion_destroy(completion);
  while (!atomic_load(&next.started)) thrd_yield();
  OK(loom_completion_wait(next.second, messages));
  REQUIRE(is_done(&data));
  loom_completion_destroy(next.second);
  loom_invocation_destroy(next.invocation);

  OK(loom_issue_start(unbound, NULL, NULL, &completion));
  FAILS(loom_completion_wait(completion, messages), "RUN/003");
  FAILS(loom_completion_wait(completion, messages), "RUN/003");
  REQUIRE(loom_completion_done(completion) && !loom_completion_done(NULL));
  MISUSE(loom_completion_wait(NULL, messages));
  MISUSE(loom_completion_wait(completion, NULL));
  MISUSE(loom_issue_start(unbound, NULL, NULL, NULL));
  loom_completion_destroy(completion);
  MISUSE(loom_issue_start(NULL, NULL, NULL, &completion));
  REQUIRE(completion == NULL);
  loom_completion_destroy(NULL);
  test_in_flight(device);
  loom_invocation_destroy(unbound);
  loom_program_destroy(program);
  loom_device_destroy(device);
}

static void test_profile_rows(loom_profile* profile) {
  loom_profiled_command command = {sizeof command};
  loom_profiled_operand operand = {sizeof operand};
  loom_profiled_dispatch dispatch = {sizeof dispatch};
  REQUIRE(loom_profile_command_count(profile) == 2 && loom_profile_command_count(NULL) == 0);
  OK(loom_profile_command(profile, 1, &command));
  REQUIRE(equal(command.kernel, "scale") && equal(command.export_name, "scale"));
  REQUIRE(command.node == 2 && command.wave == 1 && command.request == 0 && !command.indirect);
  REQUIRE(command.operand_count == 3 && command.workgroup_size[0] == 1);
  REQUIRE(equal(command.file, fixture) && command.line == 20 && command.column == 3);
  OK(loom_profile_operand(profile, 1, 0, &operand));
  REQUIRE(operand.storage == LOOM_PARAMETER && equal(operand.name, "w") && operand.bytes == 32);
  OK(loom_profile_operand(profile, 1, 1, &operand));
  REQUIRE(operand.storage == LOOM_BINDING && equal(operand.name, "output"));
  REQUIRE(loom_profile_dispatch_count(profile) == 2 && loom_profile_dispatch_count(NULL) == 0);
  OK(loom_profile_dispatch(profile, 1, &dispatch));
  REQUIRE(dispatch.command == 1 && dispatch.thread == 0 && dispatch.grid[0] == 4);
  REQUIRE(dispatch.begin <= dispatch.end && dispatch.end <= loom_profile_duration(profile));
  REQUIRE(dispatch.first_workgroup == 0 && dispatch.last_workgroup == 4);
  MISUSE(loom_profile_command(profile, 2, &command));
  MISUSE(loom_profile_command(NULL, 0, &command));
  MISUSE(loom_profile_command(profile, 0, NULL));
  MISUSE(loom_profile_operand(profile, 2, 0, &operand));
  MISUSE(loom_profile_operand(profile, 1, 3, &operand));
  MISUSE(loom_profile_operand(NULL, 0, 0, &operand));
  MISUSE(loom_profile_operand(profile, 0, 0, NULL));
  MISUSE(loom_profile_dispatch(profile, 2, &dispatch));
  MISUSE(loom_profile_dispatch(NULL, 0, &dispatch));
  MISUSE(loom_profile_dispatch(profile, 0, NULL));
}

void test_profiles(void) {
  loom_device* device = loom_device_create_cpu(1);
  loom_program* program = program_twice(device);
  loom_program* twin = program_twice(device);
  loom_profile* profile = loom_profile_create(program);
  loom_profile* other = loom_profile_create(twin);
  numbers data;
  loom_invocation* invocation = bound_to(program, &data);
  loom_invocation* unbound = loom_invocation_create(program);
  loom_bytes text;
  loom_program_destroy(twin);
  REQUIRE(loom_profile_create(NULL) == NULL);
  REQUIRE(loom_profile_dispatch_count(profile) == 0 && loom_profile_duration(profile) == 0);
  MISUSE(loom_issue_profiled(NULL, profile, messages));
  MISUSE(loom_issue_profiled(invocation, NULL, messages));
  MISUSE(loom_issue_profiled(invocation, profile, NULL));
  MISUSE(loom_issue_profiled(invocation, other, messages));
  OK(loom_issue_profiled(invocation, profile, messages));
  REQUIRE(is_done(&data));
  test_profile_rows(profile);
  OK(loom_profile_chrome_trace(profile, &text));
  REQUIRE(text.size > 100 && ((const char*)text.data)[0] == '{');
  MISUSE(loom_profile_chrome_trace(NULL, &text));
  MISUSE(loom_profile_chrome_trace(profile, NULL));
  FAILS(loom_issue_profiled(unbound, profile, messages), "RUN/003");
  REQUIRE(loom_profile_dispatch_count(profile) == 0 && loom_profile_duration(NULL) == 0);
  loom_profile_destroy(profile);
  loom_profile_destroy(other);
  loom_profile_destroy(NULL);
  loom_invocation_destroy(unbound);
  loom_invocation_destroy(invocation);
  loom_program_destroy(program);
  loom_device_destroy(device);
}
