/* How a compiled x86-64 kernel is called. Plain C, so that a C program can link an object.
 *
 * `args` has one 8-byte slot per launch argument:
 *   buffer, view         address of its first byte
 *   index, offset        64 bits
 *   i1, i8, i16, i32     zero-extended
 *   i64                  64 bits
 *   f64, f32, narrower   the bits, zero-extended
 *
 * The entry runs the workgroups [begin, end) of the dispatch, numbered with x fastest, and all
 * workitems of each one. `shape` gives the workgroup counts and the workgroup size of the whole
 * dispatch; a size that the kernel's configuration fixes by itself must be passed unchanged. The
 * function keeps no state, allocates nothing, never unwinds and may run on any number of threads
 * at once; disjoint ranges of one dispatch may run concurrently. `args` and `shape` are not
 * written and must not overlap storage that the kernel writes.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Headers of kernel libraries repeat what is in here. */
#ifndef LOOM_DISPATCH_SHAPE
#define LOOM_DISPATCH_SHAPE
typedef struct LoomDispatchShape {
  uint32_t count[3]; /* workgroups along x, y, z */
  uint32_t size[3];  /* workitems of a workgroup along x, y, z */
} LoomDispatchShape;

typedef void (*LoomKernelEntry)(const uint64_t* args, const LoomDispatchShape* shape,
                                uint64_t begin, uint64_t end);

/* What a kernel calls where one of its checks (kernel.assert, sanitizer.assert.*) does not hold:
 * the arguments of its entry, and what it expected. Behind the call the entry returns at once, and
 * what it wrote means nothing. `args` is null, and the kernel traps behind the call, where the
 * check is in a function that is called out of line. A program need not define it: without a
 * definition such a check traps. libloom defines it, and issues report it as RUN/027. */
void loom_check_failed(const uint64_t* args, const char* text);
#endif

#ifdef __cplusplus
}
#endif
