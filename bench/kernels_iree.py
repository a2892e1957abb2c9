"""IREE's CPU backend: compiles a case once, checks it, and times it with IREE's own benchmark tool, which
keeps the memory of outputs between invocations.

usage: kernels_iree.py FOLDER FLAGS BUDGET_MS CASE@THREADS...
FLAGS is a JSON array for iree-compile; modules are kept in FOLDER.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

import kernel_peer
import numpy as np

GEMM = """\
func.func @main(%a: {0}, %b: {1}) -> {2} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {2}
  %filled = linalg.fill ins(%zero : f32) outs(%empty : {2}) -> {2}
  %c = linalg.matmul ins(%a, %b : {0}, {1}) outs(%filled : {2}) -> {2}
  return %c : {2}
}}
"""

SOFTMAX = """\
func.func @main(%x: {0}) -> {0} {{
  %empty = tensor.empty() : {0}
  %y = linalg.softmax dimension(1) ins(%x : {0}) outs(%empty : {0}) -> {0}
  return %y : {0}
}}
"""

LAYER_NORM = """\
func.func @main(%x: {0}, %gamma: {1}, %beta: {1}) -> {0} {{
  %zero = arith.constant 0.0 : f32
  %count = arith.constant {columns}.0 : f32
  %epsilon = arith.constant {epsilon:e} : f32
  %row = tensor.empty() : {2}
  %none = linalg.fill ins(%zero : f32) outs(%row : {2}) -> {2}
  %sum = linalg.generic {{indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]}} ins(%x : {0}) outs(%none : {2}) {{
    ^bb0(%value: f32, %acc: f32):
      %next = arith.addf %acc, %value : f32
      linalg.yield %next : f32
  }} -> {2}
  %spread = linalg.generic {{indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>,
      affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}}
      ins(%x, %sum : {0}, {2}) outs(%none : {2}) {{
    ^bb0(%value: f32, %total: f32, %acc: f32):
      %mean = arith.divf %total, %count : f32
      %distance = arith.subf %value, %mean : f32
      %square = arith.mulf %distance, %distance : f32
      %next = arith.addf %acc, %square : f32
      linalg.yield %next : f32
  }} -> {2}
  %empty = tensor.empty() : {0}
  %y = linalg.generic {{indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>,
      affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (c)>,
      affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %sum, %spread, %gamma, %beta : {0}, {2}, {2}, {1}, {1}) outs(%empty : {0}) {{
    ^bb0(%value: f32, %total: f32, %squares: f32, %factor: f32, %term: f32, %old: f32):
      %mean = arith.divf %total, %count : f32
      %distance = arith.subf %value, %mean : f32
      %variance = arith.divf %squares, %count : f32
      %safe = arith.addf %variance, %epsilon : f32
      %inverse = math.rsqrt %safe : f32
      %scaled = arith.mulf %distance, %inverse : f32
      %grown = arith.mulf %scaled, %factor : f32
      %result = arith.addf %grown, %term : f32
      linalg.yield %result : f32
  }} -> {0}
  return %y : {0}
}}
"""

ATTENTION = """\
func.func @main(%q: {0}, %k: {0}, %v: {0}) -> {0} {{
  %scale = arith.constant {scale:e} : f32
  %empty = tensor.empty() : {0}
  %y = iree_linalg_ext.attention <{{indexing_maps = [affine_map<(b, m, n, k1, k2) -> (b, m, k1)>,
      affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, n)>,
      affine_map<(b, m, n, k1, k2) -> ()>, affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}}>
      ins(%q, %k, %v, %scale : {0}, {0}, {0}, f32) outs(%empty : {0}) {{
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  }} -> {0}
  return %y : {0}
}}
"""


def tensor(*sizes):
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def source(problem):
    sizes = problem.sizes
    if problem.kind == "gemm_f32":
        m, n, k = sizes
        return GEMM.format(tensor(m, k), tensor(k, n), tensor(m, n))
    if problem.kind == "softmax":
        return SOFTMAX.format(tensor(*sizes))
    if problem.kind == "layer_norm":
        return LAYER_NORM.format(tensor(*sizes), tensor(sizes[1]), tensor(sizes[0]),
                                 columns=sizes[1], epsilon=kernel_peer.EPSILON)
    if problem.kind == "attention":
        return ATTENTION.format(tensor(*sizes), scale=sizes[-1] ** -0.5)
    raise ValueError(f"there is no '{problem.kind}' here")


def run(command, *arguments):
    tool = pathlib.Path(sys.executable).parent / command
    return subprocess.run([str(part) for part in (tool, *arguments)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def device(threads):
    if threads == 1:
        return ["--device=local-sync"]
    return ["--device=local-task", f"--task_topology_group_count={threads}"]


def prepare(problem, folder, flags):
    """The module and its arguments, made and checked if they are not there yet."""
    stem = folder / problem.name.replace(":", "_")
    module = stem.with_suffix(".vmfb")
    inputs = [pathlib.Path(f"{stem}.{number}.npy") for number in range(len(problem.inputs))]
    arguments = [f"--module={module}", "--function=main", *(f"--input=@{one}" for one in inputs)]
    if module.exists():
        return arguments
    for path, values in zip(inputs, problem.inputs):
        np.save(path, values)
    text = stem.with_suffix(".mlir")
    text.write_text(source(problem))
    part = stem.with_suffix(".part")
    run("iree-compile", *flags, text, "-o", part)
    output = pathlib.Path(f"{stem}.output.npy")
    run("iree-run-module", *device(1), f"--module={part}", *arguments[1:], f"--output=@{output}")
    problem.check(np.load(output, mmap_mode="r"))
    os.remove(output)
    part.replace(module)
    return arguments


def main():
    folder, flags, budget_ms = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    times, problem = {}, None
    for name in sys.argv[4:]:
        case, threads = name.split("@")
        if problem is None or problem.name != case:
            problem = kernel_peer.Problem(case)
            arguments = prepare(problem, folder, flags)
        report = json.loads(run(
            "iree-benchmark-module", *device(int(threads)), *arguments, "--device_allocator=caching",
            "--benchmark_format=json", "--benchmark_repetitions=3",
            f"--benchmark_min_time={max(budget_ms, 1) / 3000:g}s"))
        unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
        times[name] = statistics.median(
            entry["real_time"] * unit[entry["time_unit"]] for entry in report["benchmarks"]
            if entry.get("run_type") == "iteration")
    print(json.dumps(times))


if __name__ == "__main__":
    main()
