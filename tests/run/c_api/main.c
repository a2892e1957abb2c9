/* The C API, used from C: c_api_test scale.loom. Exit status 0 when every step did what it says. */
#include <stdio.h>
#include <stdlib.h>

#include "c_api.h"

loom_messages* messages;
loom_context* context;
const char* fixture;

void require(int condition, const char* what, const char* file, int line) {
  if (condition) return;
  fprintf(stderr, "%s:%d: not so: %s\n%s", file, line, what, loom_messages_text(messages));
  fflush(stderr);
  /* Nothing is worth going on for. */
  _Exit(1);
}

int said(const char* code) {
  const int found =
      loom_messages_has_errors(messages) && strstr(loom_messages_text(messages), code) != NULL;
  if (found) loom_messages_clear(messages);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fixture = argv[1];
  OK(loom_abi_check(LOOM_ABI_VERSION));
  context = loom_context_create();
  messages = loom_messages_create(context);
  test_contexts();
  test_modules();
  test_links();
  test_rewriting();
  test_launch_configs();
  test_plans();
  test_requests();
  test_code();
  test_parameters();
  test_storage();
  test_programs();
  test_issues();
  test_completions();
  test_profiles();
  loom_messages_destroy(messages);
  loom_context_destroy(context);
  return 0;
}
