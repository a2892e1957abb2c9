/* Contexts, messages, modules, links, rewriting and launch configurations. */
#include "c_api.h"

static const char kKernels[] =
    "kernel.def export(\"fill\") @fill(%n: index) {\n"
    "  %one = index.constant 1 : index\n"
    "  %two = index.constant 2 : index\n"
    "  %wide = index.add %n, %two : index\n"
    "  kernel.launch.config workgroups(%wide, %two, %one) workgroup_size(%n, %one, %one) : index\n"
    "} launch(%to: buffer) {\n  kernel.return\n}\n"
    "config.decl @width : %value: index where [range(%value, 1, 64)]\n"
    "func.def public @configured() -> (index) {\n"
    "  %w = config.get @width : index\n  func.return %w : index\n}\n";
static const char kOther[] =
    "kernel.def @better(%n: index) {\n"
    "  %one = index.constant 1 : index\n"
    "  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index\n"
    "} launch(%to: buffer) {\n  kernel.return\n}\n"
    "kernel.def @wrong() {\n"
    "  %one = index.constant 1 : index\n"
    "  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index\n"
    "} launch() {\n  kernel.return\n}\n";

static loom_module* module_of(const char* text) {
  loom_module* module = NULL;
  OK(loom_module_read(context, text, strlen(text), "module", messages, &module));
  return module;
}

void test_contexts(void) {
  loom_context* base = loom_context_create();
  loom_messages* own = loom_messages_create(base);
  loom_modules* modules = loom_modules_create(base);
  loom_context* above = loom_context_create_over(base);
  REQUIRE(base != NULL && own != NULL && modules != NULL && above != NULL);
  REQUIRE(loom_abi_version() == LOOM_ABI_VERSION);
  OK(loom_abi_check(1));
  MISUSE(loom_abi_check(0));
  MISUSE(loom_abi_check(LOOM_ABI_VERSION + 1));

  REQUIRE(loom_context_create_over(NULL) == NULL && loom_messages_create(NULL) == NULL);
  REQUIRE(loom_modules_create(NULL) == NULL);
  /* Nothing is added below a context, and messages speak of their own one. */
  MISUSE(loom_modules_add_bytes(modules, kOther, sizeof kOther - 1, "late", own));
  MISUSE(loom_modules_add_file(modules, fixture, own));
  loom_modules_destroy(modules);
  modules = loom_modules_create(above);
  MISUSE(loom_modules_add_bytes(modules, kOther, sizeof kOther - 1, "foreign", own));
  REQUIRE(!loom_messages_has_errors(own) && loom_messages_text(own)[0] == '\0');
  loom_modules_destroy(modules);
  loom_messages_destroy(own);
  loom_context_destroy(base);
  loom_context_destroy(above);

  REQUIRE(!loom_messages_has_errors(NULL));
  REQUIRE(loom_messages_text(NULL)[0] == '\0' && loom_messages_json(NULL)[0] == '\0');
  loom_messages_clear(NULL);
  loom_messages_destroy(NULL);
  loom_context_destroy(NULL);
}

void test_modules(void) {
  loom_modules* modules = loom_modules_create(context);
  OK(loom_modules_add_file(modules, fixture, messages));
  OK(loom_modules_add_bytes(modules, NULL, 0, "empty", messages));
  REQUIRE(loom_modules_add_bytes(modules, "%", 1, "bad", messages) == LOOM_FAILED);
  REQUIRE(loom_messages_has_errors(messages));
  REQUIRE(strstr(loom_messages_json(messages), "\"file\":\"bad\"") != NULL);
  REQUIRE(strncmp(loom_messages_text(messages), "bad:1:1: error[", 15) == 0);
  loom_messages_clear(messages);
  REQUIRE(!loom_messages_has_errors(messages));
  FAILS(loom_modules_add_file(modules, "nowhere.loom", messages), "IO/001");
  MISUSE(loom_modules_add_file(NULL, fixture, messages));
  MISUSE(loom_modules_add_file(modules, NULL, messages));
  MISUSE(loom_modules_add_file(modules, fixture, NULL));
  MISUSE(loom_modules_add_bytes(NULL, "", 0, "x", messages));
  MISUSE(loom_modules_add_bytes(modules, NULL, 1, "x", messages));
  MISUSE(loom_modules_add_bytes(modules, "", 0, NULL, messages));
  MISUSE(loom_modules_add_bytes(modules, "", 0, "x", NULL));
  loom_modules_destroy(modules);
  loom_modules_destroy(NULL);
}

void test_links(void) {
  const char* no_name[] = {"twice", NULL};
  loom_modules* inputs = loom_modules_create(context);
  loom_modules* members = loom_modules_create(context);
  loom_context* other = loom_context_create();
  loom_messages* others = loom_messages_create(other);
  loom_modules* strangers = loom_modules_create(other);
  loom_library* library;
  loom_library* strange;
  loom_link_options options;
  loom_linked* linked = NULL;
  memset(&options, 0, sizeof options);
  OK(loom_modules_add_bytes(members, kOther, sizeof kOther - 1, "member", messages));
  OK(loom_modules_add_bytes(strangers, kOther, sizeof kOther - 1, "stranger", others));
  library = loom_library_create(members);
  strange = loom_library_create(strangers);
  REQUIRE(library != NULL && strange != NULL && loom_library_create(NULL) == NULL);
  OK(loom_modules_add_file(inputs, fixture, messages));

  MISUSE(loom_link(NULL, library, NULL, messages, &linked));
  MISUSE(loom_link(inputs, library, NULL, NULL, &linked));
  MISUSE(loom_link(inputs, library, NULL, messages, NULL));
  MISUSE(loom_link(inputs, library, NULL, others, &linked));
  MISUSE(loom_link(inputs, strange, NULL, messages, &linked));
  MISUSE(loom_link(inputs, library, &options, messages, &linked)); /* it has no size */
  options.struct_size = sizeof options;
  options.roots.count = 1;
  MISUSE(loom_link(inputs, library, &options, messages, &linked));
  options.roots.items = no_name;
  options.roots.count = 2;
  MISUSE(loom_link(inputs, library, &options, messages, &linked));
  REQUIRE(!loom_messages_has_errors(messages));
  no_name[0] = "nobody";
  options.roots.count = 1;
  FAILS(loom_link(inputs, library, &options, messages, &linked), "SYMBOL/002");
  REQUIRE(linked == NULL);

  loom_linked_destroy(link_twice());
  loom_linked_destroy(NULL);
  loom_library_destroy(library);
  loom_library_destroy(strange);
  loom_library_destroy(NULL);
  loom_modules_destroy(strangers);
  loom_modules_destroy(members);
  loom_modules_destroy(inputs);
  loom_messages_destroy(others);
  loom_context_destroy(other);
}

static void test_symbols(void) {
  loom_module* module = module_of(kKernels);
  loom_symbol symbol = {sizeof symbol};
  REQUIRE(loom_module_symbol_count(module) == 3 && loom_module_symbol_count(NULL) == 0);
  OK(loom_module_symbol(module, 0, &symbol));
  REQUIRE(strcmp(symbol.name, "fill") == 0 && strcmp(symbol.kind, "kernel") == 0);
  REQUIRE(strcmp(symbol.contract, "config(%n: index) body(%to: buffer)") == 0);
  REQUIRE(symbol.exported && !symbol.declaration && symbol.reference_count == 0);
  OK(loom_module_symbol(module, 2, &symbol));
  REQUIRE(symbol.reference_count == 1 && strcmp(symbol.references[0], "width") == 0);
  MISUSE(loom_module_symbol(module, 3, &symbol));
  MISUSE(loom_module_symbol(NULL, 0, &symbol));
  MISUSE(loom_module_symbol(module, 0, NULL));
  symbol.struct_size = 0;
  MISUSE(loom_module_symbol(module, 0, &symbol));
  loom_module_destroy(module);
}

static void test_replacing(void) {
  loom_module* module = module_of(kKernels);
  loom_module* from = module_of(kOther);
  loom_bytes text = {NULL, 1};
  OK(loom_module_replace_kernel(module, "fill", from, "better", messages));
  OK(loom_module_text(module, &text));
  REQUIRE(text.size > 100 && memcmp(text.data, "kernel.def export(\"fill\") @fill", 31) == 0);
  FAILS(loom_module_replace_kernel(module, "fill", from, "wrong", messages), "LINK/002");
  FAILS(loom_module_replace_kernel(module, "nobody", from, "better", messages), "SYMBOL/002");
  MISUSE(loom_module_replace_kernel(NULL, "fill", from, "better", messages));
  MISUSE(loom_module_replace_kernel(module, NULL, from, "better", messages));
  MISUSE(loom_module_replace_kernel(module, "fill", NULL, "better", messages));
  MISUSE(loom_module_replace_kernel(module, "fill", from, NULL, messages));
  MISUSE(loom_module_replace_kernel(module, "fill", from, "better", NULL));

  FAILS(loom_module_bind_config(module, "width", "100", messages), "CONFIG/001");
  OK(loom_module_bind_config(module, "width", "16", messages));
  FAILS(loom_module_bind_config(module, "none", "1", messages), "SYMBOL/002");
  MISUSE(loom_module_bind_config(NULL, "width", "16", messages));
  MISUSE(loom_module_bind_config(module, NULL, "16", messages));
  MISUSE(loom_module_bind_config(module, "width", NULL, messages));
  MISUSE(loom_module_bind_config(module, "width", "16", NULL));

  OK(loom_module_bytecode(module, &text));
  REQUIRE(text.size > 100);
  MISUSE(loom_module_bytecode(NULL, &text));
  REQUIRE(text.data == NULL && text.size == 0);
  MISUSE(loom_module_bytecode(module, NULL));
  MISUSE(loom_module_text(NULL, &text));
  MISUSE(loom_module_text(module, NULL));
  loom_module_destroy(module);
  loom_module_destroy(from);
}

static void test_moving(void) {
  loom_module* module = module_of(kKernels);
  loom_modules* modules = loom_modules_create(context);
  loom_context* other = loom_context_create();
  loom_messages* others = loom_messages_create(other);
  loom_modules* strangers = loom_modules_create(other);
  loom_bytes text;
  loom_module* copy = NULL;
  FAILS(loom_module_read(context, "%", 1, "bad", messages, &copy), "error");
  MISUSE(loom_module_read(NULL, "", 0, "x", messages, &copy));
  MISUSE(loom_module_read(context, NULL, 1, "x", messages, &copy));
  MISUSE(loom_module_read(context, "", 0, NULL, messages, &copy));
  MISUSE(loom_module_read(context, "", 0, "x", NULL, &copy));
  MISUSE(loom_module_read(context, "", 0, "x", others, &copy));
  MISUSE(loom_module_read(context, "", 0, "x", messages, NULL));
  REQUIRE(copy == NULL);
  OK(loom_module_text(module, &text));
  OK(loom_module_read(other, text.data, text.size, "copy", others, &copy));
  MISUSE(loom_module_replace_kernel(module, "fill", copy, "fill", messages));
  MISUSE(loom_module_bind_config(module, "width", "16", others));

  MISUSE(loom_modules_add_module(strangers, module, "x"));
  MISUSE(loom_modules_add_module(NULL, module, "x"));
  MISUSE(loom_modules_add_module(modules, NULL, "x"));
  MISUSE(loom_modules_add_module(modules, module, NULL));
  OK(loom_modules_add_module(modules, module, "x"));
  /* It is used up. */
  MISUSE(loom_modules_add_module(modules, module, "x"));
  MISUSE(loom_module_text(module, &text));
  MISUSE(loom_module_bind_config(module, "width", "16", messages));
  REQUIRE(loom_module_symbol_count(module) == 0);
  loom_module_destroy(module);
  loom_module_destroy(copy);
  loom_module_destroy(NULL);
  loom_modules_destroy(strangers);
  loom_messages_destroy(others);
  loom_context_destroy(other);
  loom_modules_destroy(modules);
}

void test_rewriting(void) {
  test_symbols();
  test_replacing();
  test_moving();
}

static loom_linked* link_kernels(void) {
  loom_modules* inputs = loom_modules_create(context);
  loom_link_options options = {sizeof options};
  const char* const root = "fill";
  loom_linked* linked = NULL;
  options.roots.items = &root;
  options.roots.count = 1;
  OK(loom_modules_add_bytes(inputs, kKernels, sizeof kKernels - 1, "kernels", messages));
  OK(loom_link(inputs, NULL, &options, messages, &linked));
  loom_modules_destroy(inputs);
  return linked;
}

/* From a workload to a geometry, with nothing but the companion's bytes. */
static void test_evaluation(loom_bytes bytes) {
  loom_context* alone = loom_context_create();
  loom_messages* own = loom_messages_create(alone);
  loom_launch_config* config = NULL;
  loom_launch_kernel kernel = {sizeof kernel};
  loom_geometry geometry;
  uint64_t n = 7;
  OK(loom_launch_config_read(alone, bytes.data, bytes.size, "companion", own, &config));
  REQUIRE(loom_launch_config_kernel_count(config) == 1 &&
          loom_launch_config_kernel_count(NULL) == 0);
  OK(loom_launch_config_kernel(config, 0, &kernel));
  REQUIRE(strcmp(kernel.name, "fill") == 0 && kernel.workload_count == 1);
  REQUIRE(strcmp(kernel.workload[0], "index") == 0);
  MISUSE(loom_launch_config_kernel(config, 1, &kernel));
  MISUSE(loom_launch_config_kernel(NULL, 0, &kernel));
  MISUSE(loom_launch_config_kernel(config, 0, NULL));
  OK(loom_launch_config_evaluate(config, "fill", &n, 1, own, &geometry));
  REQUIRE(geometry.count[0] == 9 && geometry.count[1] == 2 && geometry.count[2] == 1);
  REQUIRE(geometry.size[0] == 7 && geometry.size[1] == 1 && geometry.size[2] == 1);
  REQUIRE(loom_launch_config_evaluate(config, "fill", NULL, 0, own, &geometry) == LOOM_FAILED);
  REQUIRE(loom_launch_config_evaluate(config, "none", &n, 1, own, &geometry) == LOOM_FAILED);
  n = 0; /* no workgroup has no workitems */
  REQUIRE(loom_launch_config_evaluate(config, "fill", &n, 1, own, &geometry) == LOOM_FAILED);
  MISUSE(loom_launch_config_evaluate(NULL, "fill", &n, 1, own, &geometry));
  MISUSE(loom_launch_config_evaluate(config, NULL, &n, 1, own, &geometry));
  MISUSE(loom_launch_config_evaluate(config, "fill", NULL, 1, own, &geometry));
  MISUSE(loom_launch_config_evaluate(config, "fill", &n, 1, NULL, &geometry));
  MISUSE(loom_launch_config_evaluate(config, "fill", &n, 1, messages, &geometry));
  MISUSE(loom_launch_config_evaluate(config, "fill", &n, 1, own, NULL));
  loom_launch_config_destroy(config);
  loom_messages_destroy(own);
  loom_context_destroy(alone);
}

void test_launch_configs(void) {
  const char* const names[] = {"fill", NULL};
  const loom_strings one = {names, 1};
  const loom_strings hole = {names, 2};
  const char* const unknown = "nobody";
  const loom_strings wrong = {&unknown, 1};
  loom_linked* linked = link_kernels();
  loom_launch_config* config = NULL;
  loom_bytes bytes;
  MISUSE(loom_launch_config_write(NULL, NULL, messages, &bytes));
  MISUSE(loom_launch_config_write(linked, &hole, messages, &bytes));
  MISUSE(loom_launch_config_write(linked, &one, NULL, &bytes));
  MISUSE(loom_launch_config_write(linked, &one, messages, NULL));
  OK(loom_launch_config_write(linked, &one, messages, &bytes));
  test_evaluation(bytes);
  FAILS(loom_launch_config_read(context, bytes.data, bytes.size - 1, "cut", messages, &config),
        "BINARY/002");
  REQUIRE(config == NULL);
  MISUSE(loom_launch_config_read(NULL, bytes.data, bytes.size, "x", messages, &config));
  MISUSE(loom_launch_config_read(context, NULL, bytes.size, "x", messages, &config));
  MISUSE(loom_launch_config_read(context, bytes.data, bytes.size, NULL, messages, &config));
  MISUSE(loom_launch_config_read(context, bytes.data, bytes.size, "x", NULL, &config));
  MISUSE(loom_launch_config_read(context, bytes.data, bytes.size, "x", messages, NULL));
  MISUSE(loom_launch_config_write(linked, &one, messages, &bytes)); /* it is used up */
  loom_linked_destroy(linked);
  linked = link_kernels();
  FAILS(loom_launch_config_write(linked, &wrong, messages, &bytes), "SYMBOL/002");
  loom_linked_destroy(linked);
  loom_launch_config_destroy(NULL);
}
