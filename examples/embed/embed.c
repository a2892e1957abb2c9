/* Runs a command program inside a C application, waiting for it and not: embed_c double.loom */
#include <stdatomic.h>
#include <stdio.h>
#include <threads.h>

#include "loom/api/loom_c.h"

static int fail(loom_messages* messages) {
  fputs(loom_messages_text(messages), stderr);
  return 1;
}

/* Called on a thread of the device once an issue is done. */
static void note_end(void* user) { atomic_store((atomic_int*)user, 1); }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  /* Functions are only ever added, so a library that is at least as new will do. */
  if (loom_abi_check(LOOM_ABI_VERSION) != LOOM_OK) {
    fputs("the Loom library is older than this program\n", stderr);
    return 1;
  }
  loom_context* context = loom_context_create();
  loom_messages* messages = loom_messages_create(context);
  loom_modules* inputs = loom_modules_create(context);
  loom_linked* linked = NULL;
  loom_plan* plan = NULL;
  loom_executables* code = NULL;
  loom_device* device = loom_device_create_cpu(0);
  loom_program* program = NULL;
  const char* const names[] = {"twice"};
  const loom_strings roots = {names, 1};
  if (loom_modules_add_file(inputs, argv[1], messages) != LOOM_OK ||
      loom_link(inputs, NULL, NULL, messages, &linked) != LOOM_OK ||
      loom_prepare(linked, &roots, messages, &plan) != LOOM_OK ||
      loom_compile(plan, NULL, messages, &code) != LOOM_OK ||
      loom_materialize(device, plan, 0, code, NULL, messages, &program) != LOOM_OK) {
    return fail(messages);
  }
  float input[4] = {1, 2, 3, 4};
  float output[4] = {0, 0, 0, 0};
  loom_invocation* invocation = loom_invocation_create(program);
  if (loom_bind_name(invocation, "input", input, sizeof input, messages) != LOOM_OK ||
      loom_bind_name(invocation, "output", output, sizeof output, messages) != LOOM_OK ||
      loom_issue(invocation, messages) != LOOM_OK) {
    return fail(messages);
  }
  printf("%g %g %g %g\n", output[0], output[1], output[2], output[3]);

  /* Another issue, which runs beside this thread; until it is done the storage is the program's. */
  input[3] = 40;
  atomic_int ended = 0;
  loom_completion* completion = NULL;
  if (loom_issue_start(invocation, note_end, &ended, &completion) != LOOM_OK) return 1;
  if (loom_completion_wait(completion, messages) != LOOM_OK) return fail(messages);
  loom_completion_destroy(completion);
  printf("%g %g %g %g\n", output[0], output[1], output[2], output[3]);

  /* The call comes after the end of the issue; `ended` must stay until then. */
  while (!atomic_load(&ended)) thrd_yield();

  /* In any order: each handle keeps alive what it was made from. */
  loom_invocation_destroy(invocation);
  loom_program_destroy(program);
  loom_device_destroy(device);
  loom_executables_destroy(code);
  loom_plan_destroy(plan);
  loom_linked_destroy(linked);
  loom_modules_destroy(inputs);
  loom_messages_destroy(messages);
  loom_context_destroy(context);
  return 0;
}
