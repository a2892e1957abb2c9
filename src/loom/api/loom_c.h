/* Loom for C applications, and for every language that can call C. Stable: functions and types are
 * only ever added; structs begin with their size, so that they can grow.
 *
 * Handles are created and destroyed by the functions named for that; destroying NULL does nothing.
 * Each keeps alive what it was made from, so they may be destroyed in any order. Functions that can
 * fail return LOOM_OK or say why in `messages`, which is never NULL. Strings are UTF-8, end with a
 * zero byte and are copied unless it says otherwise.
 *
 * Threads: a context with its messages, modules, libraries and links belongs to one thread at a
 * time. Plans, executables, devices and programs are immutable and may be shared. An invocation
 * belongs to one caller at a time; each thread makes its own, with its own messages.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_ABI_VERSION 2
/* The version of the library that was linked; at least the one that was compiled against. */
uint32_t loom_abi_version(void);

typedef enum loom_status {
  LOOM_OK = 0,
  LOOM_FAILED = 1,        /* the messages say why */
  LOOM_OUT_OF_MEMORY = 2, /* nothing was changed */
  LOOM_MISUSE = 3         /* an argument breaks the rules of the function */
} loom_status;

typedef struct loom_context loom_context;
typedef struct loom_messages loom_messages;
typedef struct loom_modules loom_modules;
typedef struct loom_library loom_library;
typedef struct loom_linked loom_linked;
typedef struct loom_plan loom_plan;
typedef struct loom_executables loom_executables;
typedef struct loom_parameters loom_parameters;
typedef struct loom_device loom_device;
typedef struct loom_program loom_program;
typedef struct loom_invocation loom_invocation;

/* --- context and messages -------------------------------------------------------------------- */

/* NULL when there is no memory, as from every function that returns a handle. */
loom_context* loom_context_create(void);
void loom_context_destroy(loom_context* context);

loom_messages* loom_messages_create(const loom_context* context);
void loom_messages_destroy(loom_messages* messages);
int loom_messages_has_errors(const loom_messages* messages);
void loom_messages_clear(loom_messages* messages);
/* All messages, for people or as one JSON object a line. Valid until the next call with the same
 * messages. */
const char* loom_messages_text(loom_messages* messages);
const char* loom_messages_json(loom_messages* messages);

/* --- modules and linking --------------------------------------------------------------------- */

/* Inputs of a link. Text or bytecode; the content decides. */
loom_modules* loom_modules_create(const loom_context* context);
void loom_modules_destroy(loom_modules* modules);
loom_status loom_modules_add_file(loom_modules* modules, const char* path, loom_messages* messages);
/* `name` is what messages call the bytes. */
loom_status loom_modules_add_bytes(loom_modules* modules, const void* bytes, size_t size,
                                   const char* name, loom_messages* messages);

/* Takes the modules over; they are left empty. A library serves any number of links. */
loom_library* loom_library_create(loom_modules* modules);
void loom_library_destroy(loom_library* library);

typedef struct loom_strings {
  const char* const* items;
  size_t count;
} loom_strings;

typedef struct loom_link_options {
  size_t struct_size;        /* sizeof(loom_link_options) */
  loom_strings roots;        /* without '@'; none: what the inputs export */
  loom_strings specialize;   /* "@root:name=value" */
  loom_strings config;       /* "key=value" */
  loom_strings config_files; /* paths of JSON files */
} loom_link_options;

/* `library` and `options` may be NULL. */
loom_status loom_link(const loom_modules* inputs, const loom_library* library,
                      const loom_link_options* options, loom_messages* messages,
                      loom_linked** linked);
void loom_linked_destroy(loom_linked* linked);

/* --- plans ----------------------------------------------------------------------------------- */

/* Prepares the programs `roots` (without '@'; NULL or none: the public ones). Uses the linked
 * module up, whether it succeeds or not; only destroying it is left. */
loom_status loom_prepare(loom_linked* linked, const loom_strings* roots, loom_messages* messages,
                         loom_plan** plan);
void loom_plan_destroy(loom_plan* plan);
size_t loom_plan_program_count(const loom_plan* plan);

/* Bytes that live as long as the handle they came from. */
typedef struct loom_bytes {
  const void* data;
  size_t size;
} loom_bytes;

/* The schedule tree with its wave numbers, as text or as a Graphviz graph; not terminated. */
loom_status loom_plan_schedule_text(loom_plan* plan, size_t program, loom_bytes* text);
loom_status loom_plan_schedule_dot(loom_plan* plan, size_t program, loom_bytes* text);
/* The bytes of a `.loomcmd` file. */
loom_status loom_plan_artifact(loom_plan* plan, size_t program, loom_bytes* bytes);

/* What one executable entry is compiled from. Views live as long as the plan. */
typedef struct loom_kernel_request {
  size_t struct_size; /* sizeof(loom_kernel_request), set by the caller */
  uint32_t ordinal;
  loom_bytes symbol;
  loom_bytes export_name;
  loom_bytes bytecode;
} loom_kernel_request;
size_t loom_plan_request_count(const loom_plan* plan);
loom_status loom_plan_request(const loom_plan* plan, size_t index, loom_kernel_request* request);

/* --- code, parameters, programs -------------------------------------------------------------- */

/* Serves an entry of a plan in place of its request, or where it has none. */
typedef struct loom_external_entry {
  const char* symbol; /* of the entry, without '@' */
  void* function;     /* a LoomKernelEntry (loom/target/x86/kernel_abi.h); or else NULL and: */
  const char* file;   /* ELF relocatable or shared object, which is trusted */
  const char* name;   /* in the file; NULL: the entry's artifact name */
} loom_external_entry;

typedef struct loom_compile_options {
  size_t struct_size;    /* sizeof(loom_compile_options) */
  int fast;              /* the least compile time instead of the fastest code */
  int flush_denormals;   /* permit it */
  unsigned thread_count; /* that compile; 0 takes all */
  /* Folder that keeps code between runs, for any number of processes at once; NULL for none. One
   * that cannot be used is a warning. 0 bytes is 1 GiB. */
  const char* cache_folder;
  uint64_t cache_bytes;
  const loom_external_entry* externals;
  size_t external_count;
} loom_compile_options;

/* Compiles every request for this machine's CPU. `options` may be NULL. */
loom_status loom_compile(const loom_plan* plan, const loom_compile_options* options,
                         loom_messages* messages, loom_executables** executables);
void loom_executables_destroy(loom_executables* executables);

loom_parameters* loom_parameters_create(void);
void loom_parameters_destroy(loom_parameters* parameters);
/* GGUF, safetensors or npy. `root` is the launch binding that the file serves, without '%'; NULL or
 * empty serves every one. All files are opened before the first materialization. */
loom_status loom_parameters_open(loom_parameters* parameters, const char* path, const char* root,
                                 loom_messages* messages);

/* Threads that one issue may use, the calling one included; 0 takes all. */
loom_device* loom_device_create_cpu(unsigned thread_count);
void loom_device_destroy(loom_device* device);

/* `executables` were compiled from `plan`. `parameters` may be NULL. */
loom_status loom_materialize(const loom_device* device, const loom_plan* plan, size_t program,
                             const loom_executables* executables, const loom_parameters* parameters,
                             loom_messages* messages, loom_program** out);
void loom_program_destroy(loom_program* program);

/* A launch binding that takes storage at issue. */
typedef struct loom_binding {
  size_t struct_size;  /* sizeof(loom_binding), set by the caller */
  uint32_t ordinal;    /* among the program's launch bindings, as in the source */
  loom_bytes name;     /* without '%'; lives as long as the program */
  uint64_t least_size; /* bytes, as far as that is exact */
  uint64_t alignment;  /* of the first byte */
} loom_binding;
size_t loom_program_binding_count(const loom_program* program);
loom_status loom_program_binding(const loom_program* program, size_t index, loom_binding* binding);

/* --- issue ----------------------------------------------------------------------------------- */

loom_invocation* loom_invocation_create(const loom_program* program);
void loom_invocation_destroy(loom_invocation* invocation);
/* The storage is the caller's and stays valid while issues use it. On failure the binding keeps
 * what it had. Allocates nothing unless it reports. */
loom_status loom_bind(loom_invocation* invocation, uint32_t ordinal, void* storage, size_t size,
                      loom_messages* messages);
loom_status loom_bind_name(loom_invocation* invocation, const char* name, void* storage,
                           size_t size, loom_messages* messages);
/* Runs the program once with the storage bound now; all its work is done when it returns. Allocates
 * nothing after the first issue. */
loom_status loom_issue(loom_invocation* invocation, loom_messages* messages);

#ifdef __cplusplus
}
#endif
