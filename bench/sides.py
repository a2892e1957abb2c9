"""The sides of a benchmark: us and each peer. A side prepares once, then measures every round."""

import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess

import candidates
import generate

FUNCTIONS = 20000
LIBRARY_SYMBOLS = 5000
SCALE_FUNCTIONS = [25000, 50000, 100000]
MODEL_LAUNCHES = [128, 1024, 10000, 100000]
DISPATCHES = 1000
CASES = 10000


class Unavailable(Exception):
    """This peer cannot run here; the text says why."""


class BenchError(Exception):
    """A side gave a wrong answer or did not run: there is nothing worth timing."""


@dataclasses.dataclass
class Context:
    bin: pathlib.Path
    work: pathlib.Path
    quick: bool

    @property
    def inputs(self):
        return self.work / "inputs"

    @property
    def budget_ms(self):
        """Time of one measurement in one round."""
        return 50 if self.quick else 250


def execute(command, what):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchError(f"{what} ended with status {done.returncode}: {done.stderr[-2000:]}")
    return done


class Program:
    """A benchmark program of this folder: prints one JSON object of metric and value."""

    def __init__(self, name, arguments, inputs=lambda context: None):
        self.name = name
        self._arguments = arguments
        self._inputs = inputs

    def prepare(self, context):
        self._inputs(context)

    def measure(self, context):
        command = [context.bin / self.name, *self._arguments(context), context.budget_ms]
        return json.loads(execute(command, self.name).stdout)


def compile_inputs(context):
    """Generated files of suite `compile`; the operation counts are given to the program."""
    folder = context.inputs
    ops = generate.twins(FUNCTIONS, folder / "twin.loom", folder / "twin.mlir")
    (folder / "twin.ops").write_text(str(ops))
    generate.library(LIBRARY_SYMBOLS, folder / "library.loom", folder / "main.loom")
    for launches in MODEL_LAUNCHES:
        generate.model(launches, folder / f"model-{launches}.loom")
    for size in generate.KERNEL_STEPS:
        generate.kernel(size, folder / f"kernel-{size}.loom")


def issue_inputs(context):
    generate.dispatches(DISPATCHES, context.inputs / "dispatches.loom")


def check_inputs(context):
    generate.cases(CASES, context.inputs / "cases.loom")


class Scale:
    """Modules of three sizes through bench_scale; nanoseconds and bytes an operation."""

    name = "bench_scale"

    def prepare(self, context):
        for functions in SCALE_FUNCTIONS:
            generate.twins(functions, context.inputs / f"scale-{functions}.loom", os.devnull)

    def measure(self, context):
        values = {}
        for functions in SCALE_FUNCTIONS:
            command = [context.bin / self.name, context.inputs / f"scale-{functions}.loom"]
            found = json.loads(execute(command, self.name).stdout)
            values[f"ops_{functions}"] = found["ops"]
            values[f"bytes_{functions}"] = found["bytes_per_op"]
            for step in ("parse", "canonicalize", "print"):
                values[f"{step}_{functions}"] = 1e6 * found[step] / found["ops"]
        return values


class MlirOpt:
    """The times that mlir-opt reports for parsing and verifying text and bytecode and for printing.
    Its timer starts after the process and its context are up."""

    name = "mlir-opt"

    def __init__(self):
        self._program = None
        self._ops = 0

    def prepare(self, context):
        self._program = peer_program("LOOM_MLIR_OPT", "mlir-opt")
        self._ops = int((context.inputs / "twin.ops").read_text())
        execute([self._program, "--emit-bytecode", context.inputs / "twin.mlir", "-o",
                 context.inputs / "twin.mlirbc"], "mlir-opt-19")
        if context.quick:
            return
        stats = execute([self._program, "--print-op-stats=json", context.inputs / "twin.mlir",
                         "-o", "/dev/null"], "mlir-opt-19").stderr
        counts = json.loads(stats[stats.index("{"):stats.rindex("}") + 1])
        # The module, and the loops of the first of four shapes, have operations nobody spelled.
        counted = sum(counts.values()) - 1 - FUNCTIONS // 4
        if counted != self._ops:
            raise BenchError(f"mlir-opt-19 sees {counted} operations instead of {self._ops}")

    def measure(self, context):
        text = self._times(context.inputs / "twin.mlir")
        bytecode = self._times(context.inputs / "twin.mlirbc")
        return {"parse_ops_per_second": self._ops / text["Parser"],
                "print_ops_per_second": self._ops / text["Output"],
                "bytecode_ops_per_second": self._ops / bytecode["Parser"]}

    def _times(self, path):
        report = execute([self._program, "--mlir-timing", "--mlir-output-format=json",
                          "--mlir-disable-threading", path, "-o", "/dev/null"], "mlir-opt-19").stderr
        return {row["name"]: row["wall"]["duration"] for row in json.loads(report)}


# Stated once, beside the requirement that installs it.
IREE_VERSION = re.search(r"^iree-base-compiler==(\S+)", (
    pathlib.Path(__file__).resolve().parent.parent / "scripts" / "bench-requirements.txt"
).read_text(), re.MULTILINE).group(1)
IREE_FLAGS = ["--iree-hal-target-device=local",
              "--iree-hal-local-target-device-backends=llvm-cpu",
              "--iree-llvmcpu-target-cpu=host"]


def peer_program(variable, name):
    """The program that `./dev bench` found for a peer, or the reason why there is none."""
    path = os.environ.get(variable)
    if not path:
        raise Unavailable(os.environ.get(f"{variable}_MISSING") or f"{name} was not looked for")
    return pathlib.Path(path)


def iree_python():
    return peer_program("LOOM_IREE_PYTHON", "IREE")


class IreeCompile:
    """In-process compile time of the same kernels; session and process start are not counted."""

    name = "IREE compiler"

    def __init__(self):
        self._command = []

    def prepare(self, context):
        python = iree_python()
        files = []
        for size in generate.KERNEL_STEPS:
            path = context.inputs / f"kernel-{size}.mlir"
            path.write_text(generate.iree_kernel(size))
            files.append(path)
        script = pathlib.Path(__file__).with_name("iree_compile.py")
        self._command = [python, script, json.dumps(IREE_FLAGS), *files]
        execute([*self._command, "--check"], "IREE compile peer")

    def measure(self, context):
        return json.loads(execute([*self._command, f"--repeat={1 if context.quick else 3}"],
                                  "IREE compile peer").stdout)


class IreeRun:
    """Time of one invocation of a module with DISPATCHES dependent dispatches, per dispatch."""

    def __init__(self, device):
        self.name = f"IREE {device}"
        self._device = device
        self._arguments = []
        self._program = None

    def prepare(self, context):
        folder = iree_python().parent
        source = context.inputs / "dispatches.mlir"
        module = context.inputs / f"dispatches-{self._device}.vmfb"
        source.write_text(generate.iree_dispatches(DISPATCHES))
        execute([folder / "iree-compile", *IREE_FLAGS, source, "-o", module], "iree-compile")
        self._arguments = [f"--device={self._device}", f"--module={module}", "--function=main",
                           "--input=1xf32=0"]
        self._program = folder / "iree-benchmark-module"
        answer = execute([folder / "iree-run-module", *self._arguments],
                         "iree-run-module").stdout.split()
        if answer[-1] != f"1xf32={DISPATCHES}":
            raise BenchError(f"IREE ran {answer[-1]} of {DISPATCHES} dispatches")

    def measure(self, context):
        report = json.loads(execute(
            [self._program, *self._arguments, "--benchmark_format=json",
             "--benchmark_repetitions=5",
             f"--benchmark_min_time={context.budget_ms / 5000:g}s"], self.name).stdout)
        unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
        times = [entry["real_time"] * unit[entry["time_unit"]] for entry in report["benchmarks"]
                 if entry.get("run_type") == "iteration"]
        return {"serial": statistics.median(times) / DISPATCHES}


def candidate_inputs(context):
    (context.inputs / "candidates.loom").write_text(candidates.loom_module())
    (context.inputs / "candidates.config.loom").write_text(candidates.loom_configuration())


class KernelTuner:
    """The C backend of Kernel Tuner on the same space, in a process of its own."""

    name = "Kernel Tuner"

    def __init__(self):
        self._command = []

    def prepare(self, context):
        python = peer_program("LOOM_TUNER_PYTHON", "Kernel Tuner")
        self._command = [python, pathlib.Path(__file__).with_name("candidates.py")]
        try:
            execute([*self._command, "CHECK", candidates.SIZE], self.name)
        except BenchError as error:  # its compiler, for one, may be missing
            raise Unavailable(str(error).splitlines()[-1]) from error

    def measure(self, context):
        return json.loads(execute([*self._command, "RUN", candidates.SIZE], self.name).stdout)
