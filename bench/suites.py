"""The suites: which sides are measured and which rows are made of them."""

import dataclasses

import kernel_sides
import kernels
import sides


@dataclasses.dataclass
class Row:
    case: str
    metric: str
    unit: str
    better: str  # lower | higher
    ours: tuple  # side name, key
    peer: tuple | None = None
    peer_name: str = ""
    target: float | None = None
    target_kind: str = "ours"  # ratio | ours


@dataclasses.dataclass
class Suite:
    name: str
    sides: list
    rows: list


def _compile_suite():
    ours = "bench_compile"
    rows = [
        Row("text to verified module, 20,000 functions", "throughput", "ops/s", "higher",
            (ours, "parse_ops_per_second"), ("mlir-opt", "parse_ops_per_second"),
            "mlir-opt 19 parser", 5, "ratio"),
        Row("module to canonical text, 20,000 functions", "throughput", "ops/s", "higher",
            (ours, "print_ops_per_second"), ("mlir-opt", "print_ops_per_second"),
            "mlir-opt 19 printer", 5, "ratio"),
        Row("bytecode to verified module, 20,000 functions", "throughput", "ops/s", "higher",
            (ours, "bytecode_ops_per_second"), ("mlir-opt", "bytecode_ops_per_second"),
            "mlir-opt 19 bytecode reader", 3, "ratio"),
        Row("link and select one root of 5,000 symbols", "time", "ms", "lower", (ours, "link"),
            target=0.2),
    ]
    for functions in sides.SCALE_FUNCTIONS:
        case = f"module of {functions:,} functions"
        rows += [Row(case, "operations", "ops", "higher", ("bench_scale", f"ops_{functions}"))]
        rows += [Row(case, f"{step} time per operation", "ns", "lower",
                     ("bench_scale", f"{step}_{functions}"))
                 for step in ("parse", "canonicalize", "print")]
        rows += [Row(case, "peak memory per operation", "bytes", "lower",
                     ("bench_scale", f"bytes_{functions}"), target=400)]
    for launches in sides.MODEL_LAUNCHES:
        rows.append(Row(f"prepare a model of {launches:,} launches", "time", "ms", "lower",
                        (ours, f"prepare_{launches}"), target=1 if launches == 1024 else None))
    for launches in sides.MODEL_LAUNCHES:
        rows.append(Row(f"prepare a model of {launches:,} launches", "time per launch", "ns",
                        "lower", (ours, f"prepare_{launches}_per_launch")))
    rows.append(Row(f"prepare a model of {sides.MODEL_LAUNCHES[-1]:,} launches",
                    "time per launch over that of 1,024", "x", "lower",
                    (ours, "prepare_growth"), target=1.5))
    rows.append(Row(f"prepare a model of {sides.MODEL_LAUNCHES[-1]:,} launches",
                    "peak memory per launch", "bytes", "lower",
                    (ours, "prepare_bytes_per_launch"), target=1024))
    rows.append(Row("prepare a model of 1,024 launches, kernel requests published", "time", "ms",
                    "lower", (ours, "prepare_requests")))
    for size in ("small", "large"):
        for tier, key in (("first tier", "fast"), ("optimized", "optimized")):
            rows.append(Row(f"request to callable x86-64 code, {size} kernel, {tier}", "time",
                            "ms", "lower", (ours, f"{size}_{key}"), ("IREE compiler", size),
                            f"IREE {sides.IREE_VERSION} compiler",
                            1 if (size, key) == ("small", "fast") else None))
    program = sides.Program(ours, lambda context: [context.inputs], sides.compile_inputs)
    return Suite("compile", [program, sides.Scale(), sides.MlirOpt(), sides.IreeCompile()], rows)


def _issue_suite():
    ours, tbb = "bench_issue", "bench_issue_tbb"
    chain = f"serial chain of {sides.DISPATCHES:,} empty kernels"
    forks = f"chain of {sides.DISPATCHES // 2:,} forks of two empty kernels"
    rows = [
        Row(chain, "time per dispatch", "ns", "lower", (ours, "serial"), (tbb, "serial"),
            "oneTBB flow graph, lightweight", 10),
        Row(chain, "time per dispatch", "ns", "lower", (ours, "serial"),
            ("IREE local-sync", "serial"), f"IREE {sides.IREE_VERSION} local-sync"),
        Row(chain, "time per dispatch", "ns", "lower", (ours, "serial"),
            ("IREE local-task", "serial"), f"IREE {sides.IREE_VERSION} local-task"),
        Row(chain + ", every binding replaced at every issue", "time per dispatch", "ns", "lower",
            (ours, "rebind"), (tbb, "serial"), "oneTBB flow graph, lightweight", 25),
        Row(forks, "time per fork and join", "ns", "lower", (ours, "fork_join"),
            (tbb, "fork_join"), "oneTBB flow graph"),
        Row(forks, "time per fork and join", "ns", "lower", (ours, "fork_join"),
            (tbb, "parallel_invoke"), "oneTBB parallel_invoke", 200),
        Row("fork of two branches of 10 us on two cores", "time beyond one branch", "ns", "lower",
            (ours, "fork_cross"), (tbb, "fork_cross"), "oneTBB flow graph", 1000),
        Row("fork of two branches of 100 us", "time in branches", "x", "lower",
            (ours, "fork_100us"), (tbb, "fork_100us"), "oneTBB flow graph", 1.1),
        Row("fork of two branches of 100 us after 5 ms of idleness", "time in branches", "x",
            "lower", (ours, "fork_100us_idle"), (tbb, "fork_100us_idle"), "oneTBB flow graph",
            1.35),
    ]
    program = sides.Program(ours, lambda context: [context.inputs / "dispatches.loom",
                                                   sides.DISPATCHES], sides.issue_inputs)
    peer = sides.Program(tbb, lambda context: [sides.DISPATCHES])
    return Suite("issue", [program, peer, sides.IreeRun("local-sync"),
                           sides.IreeRun("local-task")], rows)


def _hyperloom_suite():
    ours, raw = "bench_hyperloom", "bench_hyperloom_sqlite"
    rows = [Row(f"bus messages, each durable, {place}", "throughput", "messages/s", "higher",
                (ours, key), (raw, key), "raw SQLite transactions", 0.8, "ratio")
            for place, key in (("on disk", "disk"), ("in memory", "memory"))]
    programs = [sides.Program(name, lambda context: [context.work]) for name in (ours, raw)]
    tuned = "bench_candidates"
    rows.append(Row(f"matrix product of {sides.candidates.SIZE}, two tile sizes: candidates built, "
                    "checked and timed", "throughput", "candidates/min", "higher",
                    (tuned, "candidates_per_minute"), ("Kernel Tuner", "candidates_per_minute"),
                    "Kernel Tuner, C backend"))
    programs.append(sides.Program(
        tuned, lambda context: [context.inputs / "candidates.loom",
                                context.inputs / "candidates.config.loom",
                                sides.candidates.SIZE], sides.candidate_inputs))
    return Suite("hyperloom", [*programs, sides.KernelTuner()], rows)


def _check_suite():
    ours = "bench_check"
    case = f"{sides.CASES:,} small check cases over one kernel"
    rows = [
        Row(case, "time to plan them", "ms", "lower", (ours, "plan_ms"), target=50),
        Row(case, "run on the CPU, worker start included", "cases/s", "higher",
            (ours, "cases_per_second"), target=5000),
    ]
    program = sides.Program(ours, lambda context: [context.inputs / "cases.loom"],
                            sides.check_inputs)
    return Suite("check", [program], rows)


def _kernels_suite():
    ours, hand, onednn, blas = "Loom", "hand-written AVX2", "oneDNN", "OpenBLAS"
    torch, iree, pocl, code = "PyTorch", "IREE", "PoCL", "request to code"
    tvm = "TVM"
    by_hand = [*kernels.STREAMS, *kernels.SUMS, kernels.MILLION, kernels.READ]
    normed = [*kernels.SOFTMAX, *kernels.LAYER_NORM]
    compiled = [kernels.STREAMS[0], kernels.SOFTMAX[-1], kernels.LAYER_NORM[-1], kernels.CUBES[1]]
    beside = [*kernels.CUBES, kernels.SOFTMAX[-1], kernels.LAYER_NORM[-1], kernels.ATTENTION]
    every = [
        kernel_sides.Ours(ours, [*kernels.CUBES, *kernels.HALF_CUBES, *kernels.PRODUCTS, *by_hand,
                                 *normed, *kernels.RMS_NORM, *kernels.WEIGHTS, kernels.ATTENTION,
                                 *kernels.BARRIERS]),
        kernel_sides.Built(hand, "bench_kernels_hand", [*by_hand, kernels.FMA]),
        kernel_sides.Built(onednn, "bench_kernels_onednn",
                           [*normed, kernels.ATTENTION, *kernels.HALF_CUBES, kernels.ROUNDED,
                            kernels.BYTES, kernels.BATCH, kernels.FUSED], "libdnnl-dev"),
        kernel_sides.OpenBlas(kernels.CUBES),
        kernel_sides.Pocl(kernels.BARRIERS),
        kernel_sides.Packaged(torch, "LOOM_TORCH_PYTHON", "kernels_torch.py",
                              [*beside, *kernels.HALF_CUBES, kernels.BYTES]),
        kernel_sides.Tvm(tvm, [kernels.CUBES[1], kernels.SOFTMAX[-1], kernels.LAYER_NORM[-1]]),
        kernel_sides.CodeTimes(code, compiled),
        kernel_sides.Iree(iree, [kernels.CUBES[1], *beside[len(kernels.CUBES):]]),
    ]
    rows = []

    def compare(case, peer, peer_name, target=None, peer_case=None, threads=kernels.THREADS):
        for count in threads:
            rows.append(Row(f"{case.title}, {count} thread{'s' if count > 1 else ''}", "rate",
                            case.unit, "higher", (ours, kernel_sides.key(case, count)),
                            (peer, kernel_sides.key(peer_case or case, count)), peer_name,
                            target, "ratio"))

    packages = [(torch, "PyTorch, CPU"), (iree, f"IREE {sides.IREE_VERSION}")]
    for case in kernels.CUBES:
        compare(case, blas, "OpenBLAS 0.3.21", 0.9)
    for side, name in [*packages, (tvm, "TVM 0.27, schedule by hand")]:
        compare(kernels.CUBES[1], side, name, 0.9)
    for case in kernels.HALF_CUBES:
        compare(case, torch, "PyTorch, CPU", 0.9)
        compare(case, onednn, "oneDNN 2.6", 0.9)
    compare(kernels.ROUNDED, torch, "PyTorch, CPU", 0.9, kernels.HALF_CUBES[1])
    compare(kernels.ROUNDED, onednn, "oneDNN 2.6", 0.9)
    compare(kernels.SHORT, blas, "OpenBLAS 0.3.21, of f32", 0.9, kernels.CUBES[1])
    compare(kernels.BYTES, torch, "PyTorch, CPU", 0.9)
    for case in (kernels.BYTES, kernels.BATCH, kernels.FUSED):
        compare(case, onednn, "oneDNN 2.6", 0.9)
    for case in kernels.STREAMS + kernels.SUMS:
        compare(case, hand, "loop by hand for AVX2", 0.95)
    compare(kernels.MILLION, hand, "loop by hand for AVX2", 1 / 1.2)
    for case in kernels.SOFTMAX:
        compare(case, onednn, "oneDNN 2.6", 2)
    copied = kernels.case("copy", kernels.OUT)
    for threads, target in ((1, 0.55), (2, 0.85)):
        compare(kernels.SOFTMAX[-1], hand, "copy by hand, plain stores", target, copied,
                (threads,))
    for case in kernels.LAYER_NORM:
        compare(case, onednn, "oneDNN 2.6", 1.3)
    for case, peer_case in zip(kernels.RMS_NORM, kernels.LAYER_NORM):
        compare(case, onednn, "oneDNN 2.6 LayerNorm", 1.3, peer_case)
    compare(kernels.ATTENTION, onednn, "oneDNN 2.6 matmul, softmax, matmul", 1)
    for side, name in packages:
        for case in beside[len(kernels.CUBES):]:
            compare(case, side, name, 1)
    for case in (kernels.SOFTMAX[-1], kernels.LAYER_NORM[-1]):
        compare(case, tvm, "TVM 0.27, schedule by hand", 1)
    for case in kernels.WEIGHTS:
        target = 0.6 if case.kind == "gemv_q4_0" else 0.8
        compare(case, hand, "reading an array by hand", target, kernels.READ, (2,))
    for case in kernels.BARRIERS:
        compare(case, pocl, "PoCL 3.1, OpenCL C", 2)
    for case in (*kernels.CUBES, kernels.ATTENTION, kernels.SOFTMAX[1]):
        rows.append(Row(case.title, "two threads over one", "x", "higher",
                        (ours, kernel_sides.key(case, "scaling")),
                        (hand, kernel_sides.key(kernels.FMA, "scaling")),
                        "multiply-adds in registers", 0.9, "ratio"))
    for case in compiled:
        what = f"from request to callable code, {kernels.KINDS[case.kind].what}"
        for metric, key, target in (
                ("time", "request", 15 if case.kind == "gemm_f32" else 4),
                ("time in our passes", "ours", None), ("time in LLVM", "llvm", None),
                ("time from the cache", "cached", 0.3)):
            rows.append(Row(what, metric, "ms", "lower", (code, f"{case.name}@{key}"),
                            target=target))
    return Suite("kernels", every, rows)


SUITES = {"compile": _compile_suite(), "issue": _issue_suite(), "check": _check_suite(),
          "hyperloom": _hyperloom_suite(), "kernels": _kernels_suite()}
