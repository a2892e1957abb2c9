/* What the tests of the C API share. Each step states how the call ends; the first one that ends
 * otherwise ends the test. */
#pragma once

#include <loom/api/loom_c.h>
#include <string.h>

extern loom_messages* messages; /* of `context` */
extern loom_context* context;
extern const char* fixture; /* path of scale.loom */

void require(int condition, const char* what, const char* file, int line);
/* Whether the messages hold that code; forgets them. */
int said(const char* code);

#define REQUIRE(condition) require((condition) != 0, #condition, __FILE__, __LINE__)
#define OK(call) require((call) == LOOM_OK, #call " succeeds", __FILE__, __LINE__)
#define MISUSE(call) require((call) == LOOM_MISUSE, #call " is misuse", __FILE__, __LINE__)
#define FAILS(call, code)                                               \
  do {                                                                  \
    require((call) == LOOM_FAILED, #call " fails", __FILE__, __LINE__); \
    require(said(code), #call " says " code, __FILE__, __LINE__);       \
  } while (0)

static inline int equal(loom_bytes bytes, const char* text) {
  return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

/* @twice of the fixture for n=4: `output` is `input` times the square of the weights. */
loom_linked* link_twice(void);
loom_plan* plan_twice(void);
loom_program* program_twice(const loom_device* device);

void test_contexts(void);
void test_modules(void);
void test_links(void);
void test_rewriting(void);
void test_launch_configs(void);
void test_plans(void);
void test_requests(void);
void test_code(void);
void test_parameters(void);
void test_storage(void);
void test_programs(void);
void test_issues(void);
void test_completions(void);
void test_profiles(void);
