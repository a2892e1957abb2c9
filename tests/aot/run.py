#!/usr/bin/env python3
"""Kernels as shared objects with C headers, as a program uses them that has nothing of Loom.

    run.py --bin=build/bin --cc=cc --cxx=c++ [NAME...]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIBRARY = os.path.join(ROOT, "lib")
LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
OPTIONS = None
DISPATCH = """kernel.entry.decl @e(%n: index, %a: f32, %b: f32, %x: buffer, %y: buffer)

command.program.def public @run() launch(%x: buffer, %y: buffer) {
  %one = index.constant 1 : index
  %four = index.constant 4 : index
  %a = scalar.constant 2.0 : f32
  %b = scalar.constant 0.5 : f32
  kernel.dispatch @e[%one](%four, %a, %b, %x, %y) workgroup_size(%one, %one, %one) : \
[index](index, f32, f32, buffer, buffer)
  command.return
}
"""


LARGE = """kernel.def export("large") @large(%n: index) {
  %one = index.constant 1 : index
  %items = index.constant 64 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%items, %one, %one) : index
} launch(%at: index, %x: buffer) where [range(%at, 0, 1024)] {
  %base = index.constant 0 : offset
  %bytes = index.constant 262144 : offset
  %i = kernel.workitem.id<x> : index
  %last = index.constant 63 : index
  %other = index.sub %last, %i : index
  %shared = buffer.alloca<workgroup> align(16) %bytes : buffer
  %all = buffer.view %shared[%base] : buffer -> view<65536xi32>
  %to = buffer.view %x[%base] : buffer -> view<64xi32>
  %bits = index.cast %i : index to i32
  %place = index.add %i, %at : index
  %back = index.add %other, %at : index
  view.store %bits, %all[%place] : i32, view<65536xi32>
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %there = view.load %all[%back] : view<65536xi32> -> i32
  view.store %there, %to[%i] : i32, view<64xi32>
  kernel.return
}
"""


def run(command, folder, status=0):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    if status is not None and done.returncode != status:
        raise AssertionError(f"status {done.returncode} of {' '.join(command)}\n"
                             f"{done.stdout}{done.stderr}")
    return done


def library_files(*names):
    """The arguments that compile files of the library, with what they need."""
    inputs = [os.path.join(LIBRARY, f"{name}.loom") for name in names]
    rest = [name for name in sorted(os.listdir(LIBRARY))
            if name.endswith(".loom") and os.path.join(LIBRARY, name) not in inputs]
    return inputs + [f"--library={os.path.join(LIBRARY, name)}" for name in rest]


def compile_library(folder, name, inputs, *flags):
    os.makedirs(os.path.join(folder, "made"), exist_ok=True)
    run([os.path.join(OPTIONS.bin, "loom-compile"), *inputs, "--target=x86_64",
         "--format=shared-object", f"--output=made/lib{name}.so", f"--emit-header=made/{name}.h",
         *flags], folder)


def compile_odd(folder, *flags):
    """Checks say where they stand, without the folders of their file."""
    compile_library(folder, "odd", [shutil.copy(os.path.join(HERE, "odd.loom"), folder)], *flags)


def read(folder, path):
    with open(os.path.join(folder, path), "rb") as file:
        return file.read()


class Made(unittest.TestCase):
    """What all of these look at is made once."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="loom-aot-")
        cls.folder = cls.scratch.name
        compile_library(cls.folder, "kernels", library_files("elementwise", "softmax", "gemv"))
        compile_odd(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def build(self, compiler, dialect, program):
        source = os.path.join(HERE, "library.c")
        run([compiler, *dialect, *WARNINGS, "-I.", source, "-o", program, "-x", "none",
             "made/libkernels.so", "made/libodd.so", "-Wl,-rpath,$ORIGIN/made"], self.folder)
        return os.path.join(self.folder, program)

    def run_on_all_levels(self, program):
        done = run([program, *LEVELS], self.folder)
        lines = done.stdout.splitlines()
        best = [level for level in LEVELS if f"ran {level}" in lines][-1:]
        self.assertTrue(best, done.stdout)
        self.assertEqual([lines[0], lines[-1]], [f"chosen {best[0]}"] * 2, done.stdout)
        self.assertEqual(len(lines), len(LEVELS) + 2, done.stdout)

    def test_every_level_computes_the_same_in_c(self):
        self.run_on_all_levels(self.build(OPTIONS.cc, ["-std=c99"], "program_c"))

    def test_every_level_computes_the_same_in_cxx(self):
        self.run_on_all_levels(self.build(OPTIONS.cxx, ["-x", "c++", "-std=c++11"], "program_cxx"))

    def test_a_check_that_fails_traps(self):
        program = self.build(OPTIONS.cc, ["-std=c99"], "program_check")
        self.assertLess(run([program, "never"], self.folder, None).returncode, 0)

    def test_a_program_may_say_what_happens_where_a_check_fails(self):
        with open(os.path.join(self.folder, "check.c"), "w", encoding="utf-8") as source:
            source.write('#include <stdio.h>\n#include "made/odd.h"\n'
                         "void loom_check_failed(const uint64_t* args, const char* text) {\n"
                         "  (void)args;\n  puts(text);\n}\n"
                         "int main(void) { return never_run(); }\n")
        run([OPTIONS.cc, "check.c", "made/libodd.so", "-Wl,-rpath,$ORIGIN/made", "-o", "check"],
            self.folder)
        self.assertIn("it never holds", run(["./check"], self.folder).stdout)

    def test_a_library_can_be_loaded_later(self):
        with open(os.path.join(self.folder, "later.c"), "w", encoding="utf-8") as source:
            source.write('#include <dlfcn.h>\n#include <stdio.h>\n#include "made/kernels.h"\n'
                         "int main(void) {\n"
                         '  void* const library = dlopen("made/libkernels.so", RTLD_NOW);\n'
                         "  const char* (*level)(void);\n"
                         "  if (library == NULL) { puts(dlerror()); return 1; }\n"
                         '  *(void**)&level = dlsym(library, "kernels_cpu_level");\n'
                         "  puts(level());\n  return dlclose(library);\n}\n")
        run([OPTIONS.cc, "later.c", "-o", "later", "-ldl"], self.folder)
        self.assertIn(run(["./later"], self.folder).stdout.strip(), LEVELS)

    def test_headers_stand_beside_the_one_of_objects(self):
        with open(os.path.join(self.folder, "both.c"), "w", encoding="utf-8") as source:
            source.write('#include "made/kernels.h"\n#include "loom/target/x86/kernel_abi.h"\n'
                         '#include "made/kernels.h"\n#include "made/odd.h"\n')
        run([OPTIONS.cc, "-std=c99", *WARNINGS, "-I.", f"-I{os.path.join(ROOT, 'src')}",
             "-fsyntax-only", "-Wno-unused-function", "both.c"], self.folder)

    def test_bytes_depend_on_the_inputs_alone(self):
        with tempfile.TemporaryDirectory(prefix="loom-aot-other-") as other:
            compile_odd(other)
            for name in ("made/libodd.so", "made/odd.h"):
                self.assertTrue(read(self.folder, name) == read(other, name), name)
        for name in ("made/libodd.so", "made/libkernels.so", "made/odd.h", "made/kernels.h"):
            content = read(self.folder, name)
            for place in (ROOT, self.folder, "loom-link-"):
                self.assertFalse(place.encode() in content, f"{place} in {name}")

    def test_a_cache_makes_no_difference(self):
        with tempfile.TemporaryDirectory(prefix="loom-aot-cached-") as other:
            for _ in range(2):
                compile_odd(other, "--cache=cache")
                self.assertTrue(read(self.folder, "made/libodd.so") == read(other, "made/libodd.so"))
            kept = sum(len(files) for _, _, files in os.walk(os.path.join(other, "cache")))
            self.assertEqual(kept, len(LEVELS) + 1)  # one for each level, and the bytes in use

    def test_command_programs_may_dispatch_what_is_in_it(self):
        with open(os.path.join(self.folder, "run.loom"), "w", encoding="utf-8") as source:
            source.write(DISPATCH)
        run_it = [os.path.join(OPTIONS.bin, "loom-run"), "run.loom", "--fill=%x=4xf32:3.0",
                  "--print=%y=4xf32"]
        good = run([*run_it, "--executable=@e=made/libkernels.so:scale_f32"], self.folder)
        self.assertIn("[6.5, 6.5, 6.5, 6.5]", good.stdout)
        other = run([*run_it, "--executable=@e=made/libkernels.so:copy_f32"], self.folder, 1)
        self.assertIn("RUN/043", other.stderr)

    def test_processors_and_systems_decide_the_level(self):
        emulator = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
        if emulator is None:
            self.skipTest("needs qemu-x86_64")
        program = self.build(OPTIONS.cc, ["-std=c99"], "program_emulated")
        for processor, level in (("core2duo", "(null)"), ("Nehalem", LEVELS[0]),
                                 ("Haswell,-avx2", LEVELS[0]), ("Haswell", LEVELS[1]),
                                 ("Haswell,-xsave", LEVELS[0])):
            done = run([emulator, "-cpu", processor, program, *LEVELS], self.folder, None)
            self.assertEqual(done.stdout.splitlines()[0], f"chosen {level}", processor)
            self.assertEqual(done.returncode == 0, level in LEVELS, done.stdout)
        below = run([emulator, "-cpu", "core2duo", program, "never"], self.folder, None)
        self.assertIn("libodd.so: this processor is below x86-64-v2", below.stderr)

    def test_a_library_exports_what_the_header_declares(self):
        listed = run(["nm", "-D", "--defined-only", "made/libodd.so"], self.folder).stdout
        names = sorted(line.split()[-1] for line in listed.splitlines())
        kernels = ["count_items", "never", "odd_exp"]
        self.assertEqual(names, sorted([*kernels, *[f"{name}_geometry" for name in kernels],
                                        "odd_cpu_level", "odd_use_cpu_level"]))
        for name in names:
            self.assertIn(f"{name}(".encode(), read(self.folder, "made/odd.h"))

    def test_the_header_says_what_is_known(self):
        header = read(self.folder, "made/kernels.h").decode()
        for text in ("static inline int scale_f32_run(int64_t n, float a, float b, const float* x, "
                     "float* y) {",
                     "y[i] = a * x[i] + b", "buffer of f32, written",
                     "range(%n, 1, 1099511627776)", "x86-64-v2, x86-64-v3, x86-64-v4"):
            self.assertIn(text, header)

    def test_only_the_levels_asked_for_are_there(self):
        with tempfile.TemporaryDirectory(prefix="loom-aot-one-") as one:
            compile_odd(one, "--levels=x86-64-v2,x86-64")
            symbols = run(["nm", "made/libodd.so"], one).stdout
            self.assertIn("odd_exp.x86-64-v2", symbols)
            self.assertIn("odd_exp.x86-64\n", symbols)
            self.assertNotIn("odd_exp.x86-64-v3", symbols)

    def test_denormals_are_kept_or_flushed(self):
        with open(os.path.join(self.folder, "tiny.c"), "w", encoding="utf-8") as source:
            source.write('#include <stdio.h>\n#include HEADER\nint main(void) {\n'
                         "  const double from[4] = {1e-310, 1e-310, 1e-310, 1e-310};\n"
                         "  double to[4];\n"
                         "  odd_exp_run(1, false, 0, 0, 0, 0, 0, 0, 0, from, to);\n"
                         '  puts(to[0] == 0 ? "flushed" : "kept");\n  return 0;\n}\n')
        with tempfile.TemporaryDirectory(prefix="loom-aot-flush-") as other:
            compile_odd(other, "--denormals=flush")
            for folder, expected in ((self.folder, "kept"), (other, "flushed")):
                run([OPTIONS.cc, "tiny.c", f'-DHEADER="{folder}/made/odd.h"',
                     f"{folder}/made/libodd.so", f"-Wl,-rpath,{folder}/made", "-o", "tiny"],
                    self.folder)
                self.assertEqual(run(["./tiny"], self.folder).stdout.strip(), expected)

    def test_a_level_above_the_psabi_has_dot_products(self):
        levels = ["x86-64", "x86-64-v4", "x86-64-v4-dot"]
        compile_library(self.folder, "dots", library_files("gemv_narrow"), "--root=@gemv_i8",
                        f"--levels={','.join(levels)}")
        run([OPTIONS.cc, "-std=c99", *WARNINGS, "-I.", os.path.join(HERE, "dots.c"),
             "made/libdots.so", "-Wl,-rpath,$ORIGIN/made", "-o", "dots"], self.folder)
        lines = run(["./dots", *levels], self.folder).stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in lines], levels)
        self.assertEqual(lines[0], "ran x86-64")
        code = run(["objdump", "-d", "made/libdots.so"], self.folder).stdout
        parts = dict(re.findall(r"<gemv_i8\.([\w-]+)>:\n((?:.+\n)+)", code))
        self.assertIn("vpdp", parts["x86-64-v4-dot"])
        self.assertNotIn("vpdp", parts["x86-64-v4"])

    def test_the_header_says_how_much_stack_a_kernel_takes(self):
        with open(os.path.join(self.folder, "large.loom"), "w", encoding="utf-8") as source:
            source.write(LARGE)
        compile_library(self.folder, "large", ["large.loom"])
        header = read(self.folder, "made/large.h").decode()
        frame = int(re.search(r"Stack: (\d+) bytes", header)[1])
        self.assertGreaterEqual(frame, 262144)
        self.assertLess(frame, 262144 + 16384)
        small = re.search(r"Stack: (\d+) bytes", read(self.folder, "made/odd.h").decode())
        self.assertLess(int(small[1]), 4096)

    def test_requests_become_a_library(self):
        example = os.path.join(ROOT, "examples", "two_layer")
        tool = os.path.join(OPTIONS.bin, "loom-compile")
        run([tool, os.path.join(example, "model.loom"),
             os.path.join(example, "layers.loom"),
             f"--library={os.path.join(example, 'kernels.loom')}", "--root=@perceptron",
             "--specialize=@perceptron:outputs=4",
             "--format=loom-command", "--output=manifest.json",
             "--emit-kernel-requests=requests"], self.folder)
        requests = sorted(os.listdir(os.path.join(self.folder, "requests")))
        self.assertTrue(requests)
        compile_library(self.folder, "request", [os.path.join("requests", requests[0])])
        with open(os.path.join(self.folder, "request.c"), "w", encoding="utf-8") as source:
            source.write('#include "made/request.h"\n'
                         "int main(void) { return request_cpu_level() == NULL; }\n")
        run([OPTIONS.cc, "-std=c99", *WARNINGS, "-Wno-unused-function", "request.c",
             "made/librequest.so", "-Wl,-rpath,$ORIGIN/made", "-o", "request"], self.folder)
        run(["./request"], self.folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    OPTIONS, rest = parser.parse_known_args()
    OPTIONS.bin = os.path.abspath(OPTIONS.bin)
    unittest.main(argv=[sys.argv[0], *rest])
