"""The same tuning problem as a Loom program and for Kernel Tuner: a matrix product with two tiles.

Usage: candidates.py CHECK|RUN SIZE   (with a Python that has kernel-tuner) prints one JSON object
"""

import contextlib
import json
import os
import sys
import time

TILES = [4, 8, 16, 32, 64]
FIRST = 16
SIZE = 192

_LOOM = """config.decl @tile.i : %value: index where [range(%value, 4, 64)]
config.decl @tile.j : %value: index where [range(%value, 4, 64)]

kernel.def @product() {{
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
}} launch(%a: buffer, %b: buffer, %c: buffer) {{
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %n = index.constant {size} : index
  %ti = config.get @tile.i : index
  %tj = config.get @tile.j : index
  %x = buffer.view %a[%base] : buffer -> view<{size}x{size}xf32>
  %y = buffer.view %b[%base] : buffer -> view<{size}x{size}xf32>
  %z = buffer.view %c[%base] : buffer -> view<{size}x{size}xf32>
  %nothing = scalar.constant 0.0 : f32
  scf.for %i = [%zero to %n step %one]() -> () {{
    scf.for %j = [%zero to %n step %one]() -> () {{
      view.store %nothing, %z[%i, %j] : f32, view<{size}x{size}xf32>
    }}
  }}
  scf.for %i0 = [%zero to %n step %ti]() -> () {{
    %i1 = index.add %i0, %ti : index
    %ie = index.min %i1, %n : index
    scf.for %j0 = [%zero to %n step %tj]() -> () {{
      %j1 = index.add %j0, %tj : index
      %je = index.min %j1, %n : index
      scf.for %i = [%i0 to %ie step %one]() -> () {{
        scf.for %k = [%zero to %n step %one]() -> () {{
          %l = view.load %x[%i, %k] : view<{size}x{size}xf32> -> f32
          scf.for %j = [%j0 to %je step %one]() -> () {{
            %r = view.load %y[%k, %j] : view<{size}x{size}xf32> -> f32
            %s = view.load %z[%i, %j] : view<{size}x{size}xf32> -> f32
            %p = scalar.mulf %l, %r : f32
            %t = scalar.addf %s, %p : f32
            view.store %t, %z[%i, %j] : f32, view<{size}x{size}xf32>
          }}
        }}
      }}
    }}
  }}
  kernel.return
}}

command.program.def public @run() launch(%a: buffer, %b: buffer, %c: buffer) {{
  kernel.launch @product(%a, %b, %c) : (buffer, buffer, buffer)
  command.return
}}
"""

_C = """
#include <time.h>
#define N {size}
#define MIN(a, b) ((a) < (b) ? (a) : (b))
float product(const float *a, const float *b, float *c) {{
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < (long)N * N; ++i) c[i] = 0;
  for (long i0 = 0; i0 < N; i0 += TI)
    for (long j0 = 0; j0 < N; j0 += TJ)
      for (long i = i0; i < MIN(i0 + TI, N); ++i)
        for (long k = 0; k < N; ++k)
          for (long j = j0; j < MIN(j0 + TJ, N); ++j) c[i * N + j] += a[i * N + k] * b[k * N + j];
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (end.tv_sec - begin.tv_sec) * 1e3f + (end.tv_nsec - begin.tv_nsec) * 1e-6f;
}}
"""


def loom_module(size=SIZE):
    return _LOOM.format(size=size)


def loom_configuration():
    return "".join(f"config.def @tile.{axis} = {FIRST} : index\n" for axis in "ij")


def tune(size, tiles):
    """Candidates a minute of Kernel Tuner's C backend, with its own repetitions and its check of
    every candidate against a reference."""
    import kernel_tuner
    import numpy

    random = numpy.random.default_rng(0)
    a = random.uniform(-1, 1, (size, size)).astype(numpy.float32)
    b = random.uniform(-1, 1, (size, size)).astype(numpy.float32)
    c = numpy.zeros_like(a)
    begin = time.monotonic()
    with contextlib.redirect_stdout(sys.stderr):
        results, _ = kernel_tuner.tune_kernel(
            "product", _C.format(size=size), size, [a, b, c], {"TI": tiles, "TJ": tiles},
            lang="C", answer=[None, None, a @ b], atol=1e-3,
            compiler_options=["-O3", "-march=native"])
    seconds = time.monotonic() - begin
    if len(results) != len(tiles) ** 2:
        raise SystemExit(f"{len(results)} of {len(tiles) ** 2} candidates were measured")
    return {"candidates": len(results), "seconds": seconds,
            "candidates_per_minute": 60 * len(results) / seconds}


if __name__ == "__main__":
    os.chdir(os.environ.get("TMPDIR", "/tmp"))  # where the compiler's files go
    print(json.dumps(tune(int(sys.argv[2]), TILES[:1] if sys.argv[1] == "CHECK" else TILES)))
