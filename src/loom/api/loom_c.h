/* Loom for C applications, and for every language that can call C. Stable: functions and types are
 * only ever added; structs begin with their size, so that they can grow.
 *
 * Handles are created and destroyed by the functions named for that; destroying NULL does nothing.
 * Each keeps alive what it was made from, so they may be destroyed in any order. Functions that can
 * fail return LOOM_OK or say why in `messages`, which are of the context of what they are about, or
 * of one over it. No function ends the process: an argument that breaks a rule, such as NULL where
 * it does not say that it may be, a number past a count, a struct without its size or a handle that
 * belongs to another one's context, plan, program or device, gives LOOM_MISUSE, or NULL, 0 or "" in
 * place of a status, and changes nothing. What is returned through a pointer is NULL or empty then.
 * Strings are UTF-8, end with a zero byte and are copied unless it says otherwise.
 *
 * Threads: a context with its messages, modules and links belongs to one thread at a time, and so
 * does a workspace. Libraries, plans, codes, executables, devices, programs and storages are
 * immutable and may be shared. An invocation belongs to one caller at a time; each thread makes its
 * own, with its own messages. There is no state besides these handles.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_ABI_VERSION 3
/* The version of the library that was linked. */
uint32_t loom_abi_version(void);

typedef enum loom_status {
  LOOM_OK = 0,
  LOOM_FAILED = 1,        /* the messages say why */
  LOOM_OUT_OF_MEMORY = 2, /* nothing was changed */
  LOOM_MISUSE = 3         /* an argument breaks the rules of the function */
} loom_status;

/* LOOM_OK where a program that was compiled against that version of this header may use the
 * library, which is at least as new; pass LOOM_ABI_VERSION. LOOM_MISUSE otherwise, and then nothing
 * else of the library may be called. */
loom_status loom_abi_check(uint32_t compiled_against); /* since version 3 */

/* Bytes that live as long as the handle they came from, unless it says otherwise. */
typedef struct loom_bytes {
  const void* data;
  size_t size;
} loom_bytes;

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
/* Since version 3. */
typedef struct loom_workspace loom_workspace;
typedef struct loom_module loom_module;
typedef struct loom_request loom_request;
typedef struct loom_code loom_code;
typedef struct loom_storage loom_storage;
typedef struct loom_completion loom_completion;

/* --- context and messages -------------------------------------------------------------------- */

/* NULL when there is no memory, as from every function that returns a handle. */
loom_context* loom_context_create(void);
/* One whose modules may be linked against a library of `base`, to which nothing may be added any
 * more. Any number of threads may have contexts over one. */
loom_context* loom_context_create_over(const loom_context* base);
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

/* --- modules, read and rewritten ------------------------------------------------------------- */

/* One verified module; text or bytecode. Each function that changes it leaves a verified module;
 * when it fails the module is what it was. */
loom_status loom_module_read(const loom_context* context, const void* bytes, size_t size,
                             const char* name, loom_messages* messages, loom_module** module);
void loom_module_destroy(loom_module* module);

/* What a symbol says about itself; loom.h (Symbol) has the details. Texts live until the module
 * changes or the symbols are counted again. */
typedef struct loom_symbol {
  size_t struct_size; /* sizeof(loom_symbol), set by the caller */
  const char* name;   /* without '@' */
  const char* kind;
  const char* contract;
  int declaration;
  int exported;
  int retained;
  const char* const* references; /* without '@' */
  size_t reference_count;
} loom_symbol;
size_t loom_module_symbol_count(loom_module* module);
/* Counts them first where that was not done since the module changed. */
loom_status loom_module_symbol(loom_module* module, size_t index, loom_symbol* symbol);
/* Puts the kernel `replacement` of `from`, which is of the same context and only read, in the place
 * of the kernel `name`. The contract is checked. */
loom_status loom_module_replace_kernel(loom_module* module, const char* name,
                                       const loom_module* from, const char* replacement,
                                       loom_messages* messages);
/* Fixes a configuration key to a value, written as in `config.def`. */
loom_status loom_module_bind_config(loom_module* module, const char* key, const char* value,
                                    loom_messages* messages);
/* Canonical text, or bytecode. Live until the next call with the same module. */
loom_status loom_module_text(loom_module* module, loom_bytes* text);
loom_status loom_module_bytecode(loom_module* module, loom_bytes* bytes);
/* Adds the module, which is of the same context, to `modules` and uses it up; only destroying it is
 * left. */
loom_status loom_modules_add_module(loom_modules* modules, loom_module* module, const char* name);

/* --- launch configurations ------------------------------------------------------------------- */

typedef struct loom_launch_config loom_launch_config; /* since version 3 */
/* Workgroup counts and sizes of one launch. */
typedef struct loom_geometry {
  uint32_t count[3];
  uint32_t size[3];
} loom_geometry;

/* Writes the companion of the kernels `symbols` (without '@'; NULL or none: all that the module
 * defines) and uses the linked module up, whether it succeeds or not. The bytes live until the
 * linked module is destroyed. */
loom_status loom_launch_config_write(loom_linked* linked, const loom_strings* symbols,
                                     loom_messages* messages, loom_bytes* bytes);
/* What that or `loom-compile --emit-launch-config` made; other bytes are refused. Immutable; any
 * number of threads may evaluate it. */
loom_status loom_launch_config_read(const loom_context* context, const void* bytes, size_t size,
                                    const char* name, loom_messages* messages,
                                    loom_launch_config** config);
void loom_launch_config_destroy(loom_launch_config* config);
/* A kernel of the companion. Texts live as long as it. */
typedef struct loom_launch_kernel {
  size_t struct_size;          /* sizeof(loom_launch_kernel), set by the caller */
  const char* name;            /* without '@' */
  const char* const* workload; /* types of its workload arguments: "index", "i1", "f32" */
  size_t workload_count;
} loom_launch_kernel;
size_t loom_launch_config_kernel_count(const loom_launch_config* config);
loom_status loom_launch_config_kernel(const loom_launch_config* config, size_t index,
                                      loom_launch_kernel* kernel);
/* A workload argument is its bits, extended by zeros. Fails where there is no such kernel, where
 * the number of arguments is another one, and where a launch may not have that geometry. */
loom_status loom_launch_config_evaluate(const loom_launch_config* config, const char* kernel,
                                        const uint64_t* workload, size_t count,
                                        loom_messages* messages, loom_geometry* geometry);

/* --- plans ----------------------------------------------------------------------------------- */

/* Prepares the programs `roots` (without '@'; NULL or none: the public ones). Uses the linked
 * module up, whether it succeeds or not; only destroying it is left. */
loom_status loom_prepare(loom_linked* linked, const loom_strings* roots, loom_messages* messages,
                         loom_plan** plan);
void loom_plan_destroy(loom_plan* plan);

/* What one worker keeps between calls. It holds nothing of what it was lent to; code may outlive
 * it. */
loom_workspace* loom_workspace_create(void);
void loom_workspace_destroy(loom_workspace* workspace);

/* Receives requests while a plan is prepared, on the preparing thread. They are provisional until
 * `commit` or `cancel` is called, one of which is, once, before the preparation returns. */
typedef struct loom_recipient {
  /* The request is the recipient's: loom_request_destroy. 0 refuses it, which makes the preparation
   * fail; it is the recipient's even so. */
  int (*take)(void* user, loom_request* request);
  void (*commit)(void* user); /* may be NULL */
  void (*cancel)(void* user); /* may be NULL */
  void* user;
} loom_recipient;

typedef struct loom_prepare_options {
  size_t struct_size;              /* sizeof(loom_prepare_options) */
  loom_strings roots;              /* without '@'; none: the public programs */
  uint32_t max_request_classes;    /* of one kernel at one workgroup size; 0 for no limit */
  int check_hazards;               /* concurrent commands that touch the same bytes are errors */
  int plan_only;                   /* no requests; no kernel body is opened */
  const loom_recipient* recipient; /* takes the requests in place of the plan; may be NULL */
  loom_workspace* workspace;       /* may be NULL */
} loom_prepare_options;
/* As loom_prepare. `options` may be NULL. */
loom_status loom_prepare_with(loom_linked* linked, const loom_prepare_options* options,
                              loom_messages* messages, loom_plan** plan);
size_t loom_plan_program_count(const loom_plan* plan);

/* The schedule tree with its wave numbers, as text or as a Graphviz graph; not terminated. */
loom_status loom_plan_schedule_text(loom_plan* plan, size_t program, loom_bytes* text);
loom_status loom_plan_schedule_dot(loom_plan* plan, size_t program, loom_bytes* text);
/* The bytes of a `.loomcmd` file. */
loom_status loom_plan_artifact(loom_plan* plan, size_t program, loom_bytes* bytes);
/* A plan of the one program in such a file, which is mapped, checked once and then used where it
 * lies, so nobody may change it meanwhile; replacing it by another of its name changes nothing. The
 * plan has no requests, and its entries are numbered by slot. Since version 3. */
loom_status loom_plan_open(const loom_context* context, const char* path, loom_messages* messages,
                           loom_plan** plan);

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

void loom_request_destroy(loom_request* request);
/* Views live as long as the request. */
loom_status loom_request_view(const loom_request* request, loom_kernel_request* view);

/* --- code, parameters, programs -------------------------------------------------------------- */

/* Serves an entry of a plan in place of its request, or where it has none. */
typedef struct loom_external_entry {
  const char* symbol; /* of the entry, without '@' */
  void* function;     /* a LoomKernelEntry (loom/target/x86/kernel_abi.h); or else NULL and: */
  const char* file;   /* ELF relocatable or shared object, which is trusted */
  const char* name;   /* in the file; NULL: the entry's artifact name */
} loom_external_entry;

typedef struct loom_compile_options {
  size_t struct_size; /* sizeof(loom_compile_options) */
  /* 0: the fastest code. 1: the least compile time. 2, of a plan: the latter at once, and the
   * former in its place as soon as it is there, while programs run; it takes a thread until then.
   */
  int fast;
  int flush_denormals;   /* permit it */
  unsigned thread_count; /* that compile; 0 takes all */
  /* Folder that keeps code between runs, for any number of processes at once; NULL for none. One
   * that cannot be used is a warning. 0 bytes is 1 GiB. */
  const char* cache_folder;
  uint64_t cache_bytes;
  const loom_external_entry* externals;
  size_t external_count;
  loom_workspace* workspace; /* since version 3; may be NULL */
} loom_compile_options;

/* Compiles every request for this machine's CPU. `options` may be NULL. */
loom_status loom_compile(const loom_plan* plan, const loom_compile_options* options,
                         loom_messages* messages, loom_executables** executables);
void loom_executables_destroy(loom_executables* executables);

/* Compiles one request on the calling thread, whoever has it; externals and threads are not looked
 * at. `options` may be NULL. */
loom_status loom_compile_request(const loom_kernel_request* request,
                                 const loom_compile_options* options, loom_messages* messages,
                                 loom_code** code);
void loom_code_destroy(loom_code* code);
/* Gives the plan `codes[i]`, which may be NULL, for its request number i, wherever that was
 * compiled; an opened plan for its entry slot i. Only externals and workspace of the options are
 * looked at; they may be NULL. */
loom_status loom_assemble(const loom_plan* plan, const loom_code* const* codes, size_t count,
                          const loom_compile_options* options, loom_messages* messages,
                          loom_executables** executables);

loom_parameters* loom_parameters_create(void);
void loom_parameters_destroy(loom_parameters* parameters);
/* GGUF, safetensors or npy. `root` is the launch binding that the file serves, without '%'; NULL or
 * empty serves every one. All files are opened before the first materialization. */
loom_status loom_parameters_open(loom_parameters* parameters, const char* path, const char* root,
                                 loom_messages* messages);

/* Threads that one issue may use, the calling one included; 0 takes all. */
loom_device* loom_device_create_cpu(unsigned thread_count);
void loom_device_destroy(loom_device* device);

/* Zeroed memory that the device reaches; NULL when there is not enough. */
loom_storage* loom_storage_allocate(const loom_device* device, size_t size);
/* Memory that is there already, at an address as the device sees it: on the CPU device any memory
 * of the process. It is not copied, stays the caller's and must outlive every use. NULL with a size
 * is misuse and gives NULL. */
loom_storage* loom_storage_import(const loom_device* device, void* pointer, size_t size);
void loom_storage_destroy(loom_storage* storage);
/* Where the device sees it. */
void* loom_storage_pointer(const loom_storage* storage);
size_t loom_storage_size(const loom_storage* storage);

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

/* Binds memory of the program's device, which must stay while issues use it. */
loom_status loom_bind_storage(loom_invocation* invocation, uint32_t ordinal,
                              const loom_storage* storage, loom_messages* messages);
/* Begins what loom_issue does and returns; it runs on a thread of the device. Until it is done
 * nothing may be bound or issued on this invocation: that is LOOM_MISUSE. `then`, which may be
 * NULL, is called on that thread once the issue is done, and may start the invocation again.
 * Storage must stay until then; handles need not. */
loom_status loom_issue_start(loom_invocation* invocation, void (*then)(void* user), void* user,
                             loom_completion** completion);
/* Never waits. Any thread. */
int loom_completion_done(const loom_completion* completion);
/* Waits, and says why when the issue failed; each call says it again. Any thread. */
loom_status loom_completion_wait(const loom_completion* completion, loom_messages* messages);
void loom_completion_destroy(loom_completion* completion);

/* --- profiles -------------------------------------------------------------------------------- */

typedef struct loom_profile loom_profile; /* since version 3 */
/* Where the time of issues of the program goes; profile.h has the details. It keeps the program
 * alive and belongs to one thread at a time. */
loom_profile* loom_profile_create(const loom_program* program);
void loom_profile_destroy(loom_profile* profile);
/* As loom_issue, and records each dispatch in place of what the profile held. A profile of another
 * program is LOOM_MISUSE. */
loom_status loom_issue_profiled(loom_invocation* invocation, loom_profile* profile,
                                loom_messages* messages);

/* A launch of the program, in textual order. Texts live as long as the profile. */
typedef struct loom_profiled_command {
  size_t struct_size; /* sizeof(loom_profiled_command), set by the caller */
  loom_bytes kernel;  /* symbol, without '@' */
  loom_bytes export_name;
  uint32_t node;   /* row of the schedule tree in pre-order */
  uint32_t wave;   /* length of the longest chain of commands that precede it */
  int32_t request; /* ordinal of its kernel request; -1 where none was published */
  int indirect;    /* its grid is read from storage */
  uint32_t workgroup_size[3];
  size_t operand_count;
  loom_bytes file; /* where the launch is written; empty where unknown */
  uint32_t line;
  uint32_t column; /* both from 1 */
} loom_profiled_command;
size_t loom_profile_command_count(const loom_profile* profile);
loom_status loom_profile_command(const loom_profile* profile, size_t index,
                                 loom_profiled_command* command);

typedef enum loom_storage_class {
  LOOM_PARAMETER = 0,
  LOOM_BINDING = 1,
  LOOM_TRANSIENT = 2
} loom_storage_class;
/* A range of storage that a command hands to its kernel. */
typedef struct loom_profiled_operand {
  size_t struct_size; /* sizeof(loom_profiled_operand), set by the caller */
  loom_storage_class storage;
  loom_bytes name; /* the key of a parameter, else the name in the source without '%' */
  uint64_t offset; /* bytes from the begin of that storage */
  uint64_t bytes;  /* of a binding that is passed whole, what was bound at the issue */
} loom_profiled_operand;
loom_status loom_profile_operand(const loom_profile* profile, size_t command, size_t index,
                                 loom_profiled_operand* operand);

/* What one thread did of one dispatch of the last issue, in order of their begin. */
typedef struct loom_profiled_dispatch {
  size_t struct_size; /* sizeof(loom_profiled_dispatch), set by the caller */
  uint32_t command;   /* its place among the commands */
  uint32_t thread;    /* 0 is the issuing one */
  uint64_t begin;     /* nanoseconds since the issue began */
  uint64_t end;
  uint32_t grid[3];         /* workgroups of the whole dispatch */
  uint64_t first_workgroup; /* the part that this thread ran */
  uint64_t last_workgroup;  /* one past it */
} loom_profiled_dispatch;
size_t loom_profile_dispatch_count(const loom_profile* profile);
loom_status loom_profile_dispatch(const loom_profile* profile, size_t index,
                                  loom_profiled_dispatch* dispatch);
/* Nanoseconds of the whole last issue; 0 before one and after one that failed. */
uint64_t loom_profile_duration(const loom_profile* profile);
/* The last issue in Chrome's trace format. Lives until the next call with the same profile. */
loom_status loom_profile_chrome_trace(loom_profile* profile, loom_bytes* text);

#ifdef __cplusplus
}
#endif
