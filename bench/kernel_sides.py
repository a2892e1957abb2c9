"""The sides of suite `kernels`: each computes cases and reports their rates."""

import json
import os
import pathlib
import shutil
import subprocess

import kernels
from sides import IREE_FLAGS, BenchError, Unavailable, iree_python, peer_program

# The same kernels for us and for PoCL.
BARRIERS = pathlib.Path(__file__).with_name("barriers.loom")
LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "lib"


def key(case, threads):
    return f"{case.name}@{threads}"


class KernelSide:
    """Cases on one thread and on two. `measure` gives the rate of each, in the unit of its case, and
    under `CASE@scaling` how many times faster two threads are."""

    def __init__(self, name, cases, threads=kernels.THREADS):
        self.name = name
        self.cases = cases
        self.threads = threads

    def prepare(self, context):
        """Answers are checked whenever a program times; the first time is here."""
        self.times(context, 0)

    def measure(self, context):
        times = self.times(context, context.budget_ms * 3 // 5)
        values = {}
        for case in self.cases:
            for threads in self.threads:
                values[key(case, threads)] = case.rate(times[key(case, threads)])
            if len(self.threads) == 2:
                values[key(case, "scaling")] = (values[key(case, self.threads[1])]
                                                / values[key(case, self.threads[0])])
        return values

    def select(self, keys):
        """Leaves out cases that none of the keys belongs to."""
        names = {one.rpartition("@")[0] for one in keys}
        self.cases = [case for case in self.cases if case.name in names]

    def times(self, context, budget_ms):
        """Nanoseconds of each key."""
        raise NotImplementedError

    def keys(self):
        return [key(case, threads) for case in self.cases for threads in self.threads]


def program_times(program, arguments, name, environment=None):
    command = [program, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env=environment)
    if done.returncode != 0:
        raise BenchError(f"{name} ended with status {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


class Ours(KernelSide):
    """The kernels of lib/, through the public interface."""

    def prepare(self, context):
        self._programs = context.inputs / "kernels.loom"
        self._programs.write_text(kernels.loom_programs(self.cases))
        super().prepare(context)

    def times(self, context, budget_ms):
        return program_times(context.bin / "bench_kernels",
                             [self._programs, LIBRARY, BARRIERS, budget_ms,
                              *self.keys()], self.name)


class CodeTimes:
    """How long the code of our kernels takes: milliseconds under CASE@request, @ours, @llvm, @cached."""

    def __init__(self, name, cases):
        self.name = name
        self.cases = cases

    def select(self, keys):
        names = {one.rpartition("@")[0] for one in keys}
        self.cases = [case for case in self.cases if case.name in names]

    def prepare(self, context):
        self._programs = context.inputs / "kernel-code.loom"
        self._programs.write_text(kernels.loom_programs(self.cases))
        self._cache = context.work / "kernel-code-cache"
        self._cache.mkdir(parents=True, exist_ok=True)
        self.measure(context)

    def measure(self, context):
        return program_times(context.bin / "bench_kernel_code",
                             [self._programs, LIBRARY, BARRIERS, self._cache, context.budget_ms,
                              *(case.name for case in self.cases)], self.name)


class Built(KernelSide):
    """A program of this folder, which is built where the library that it calls is installed."""

    def __init__(self, name, program, cases, package=""):
        super().__init__(name, cases)
        self._program = program
        self._package = package

    def prepare(self, context):
        if not (context.bin / self._program).exists():
            raise Unavailable(f"{self._program} was not built; is {self._package} installed?")
        super().prepare(context)

    def times(self, context, budget_ms):
        return program_times(context.bin / self._program, [budget_ms, *self.keys()], self.name,
                             self.environment())

    def environment(self):
        return None


class Pocl(Built):
    """One process for each number of threads, which PoCL reads when it starts."""

    def __init__(self, cases):
        super().__init__("PoCL", "bench_kernels_opencl", cases,
                         "pocl-opencl-icd with ocl-icd-opencl-dev")

    def times(self, context, budget_ms):
        times = {}
        for threads in self.threads:
            found = program_times(
                context.bin / self._program,
                [BARRIERS.with_suffix(".cl"), budget_ms,
                 *(key(case, threads) for case in self.cases)], self.name,
                {**os.environ, "POCL_MAX_PTHREAD_COUNT": str(threads), "POCL_AFFINITY": "0"})
            times.update(found)
        return times


class OpenBlas(Built):
    """With the kernels that are the fastest here, whatever it would choose by itself: old releases
    do not know new processors."""

    CORES = ("", "SkylakeX", "Zen", "Haswell")

    def __init__(self, cases):
        super().__init__("OpenBLAS", "bench_kernels_openblas", cases, "libopenblas-dev")
        self._core = ""

    def prepare(self, context):
        super().prepare(context)
        first = [key(self.cases[0], 1)]
        best = None
        for core in self.CORES:
            self._core = core
            try:
                time = program_times(context.bin / self._program, [50, *first], self.name,
                                     self.environment())[first[0]]
            except BenchError:  # kernels that this processor cannot run
                continue
            if best is None or time < best[0]:
                best = (time, core)
        self._core = best[1]
        self.note = f"with its kernels for {self._core or 'the processor it takes this for'}"

    def environment(self):
        variables = {name: value for name, value in os.environ.items()
                     if name not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        if self._core:
            variables["OPENBLAS_CORETYPE"] = self._core
        return variables


class Packaged(KernelSide):
    """A script of this folder in the Python of a peer."""

    def __init__(self, name, variable, script, cases):
        super().__init__(name, cases)
        self._variable = variable
        self._script = pathlib.Path(__file__).with_name(script)

    def times(self, context, budget_ms):
        return program_times(peer_program(self._variable, self.name),
                             [self._script, *self.arguments(context), budget_ms, *self.keys()],
                             self.name)

    def arguments(self, context):
        return []


class Tvm(Packaged):
    """One process for each number of threads, which TVM reads when it starts."""

    def __init__(self, name, cases):
        super().__init__(name, "LOOM_TVM_PYTHON", "kernels_tvm.py", cases)

    def times(self, context, budget_ms):
        times = {}
        for threads in self.threads:
            times.update(program_times(
                peer_program(self._variable, self.name),
                [self._script, budget_ms, *(key(case, threads) for case in self.cases)], self.name,
                {**os.environ, "TVM_NUM_THREADS": str(threads)}))
        return times


class Iree(Packaged):
    """Its modules are compiled anew in each run of the suite."""

    def __init__(self, name, cases):
        super().__init__(name, "LOOM_IREE_PYTHON", "kernels_iree.py", cases)

    def prepare(self, context):
        iree_python()
        shutil.rmtree(self._folder(context), ignore_errors=True)
        super().prepare(context)

    def arguments(self, context):
        return [self._folder(context), json.dumps(IREE_FLAGS)]

    def _folder(self, context):
        return context.inputs / "kernels-iree"
