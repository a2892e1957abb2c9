"""TVM's LLVM backend with schedules written for these kernels: its untuned ones are far slower.

usage: kernels_tvm.py BUDGET_MS CASE@THREADS...
TVM_NUM_THREADS settles the threads when the process starts; the number in a case is its name only.
"""

import kernel_peer
import numpy as np
import tvm
from tvm import te, topi
from tvm.s_tir import Schedule
from tvm.tirx import indexdiv, indexmod

LANES = 16


def gemm(m, n, k):
    """Panels of 32 columns, tiles of 8 x 32 in registers."""
    a = te.placeholder((m, k), name="a")
    b = te.placeholder((k, n), name="b")
    depth = te.reduce_axis((0, k), name="depth")
    packed = te.compute((n // 32, k, 32), lambda p, r, c: b[r, p * 32 + c], name="packed")
    product = te.compute((m, n), lambda i, j: te.sum(
        a[i, depth] * packed[indexdiv(j, 32), depth, indexmod(j, 32)], axis=depth), name="product")
    schedule = Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, product])}))
    block = schedule.get_sblock("product")
    i, j, r = schedule.get_loops(block)
    (io, ii), (jo, ji), (ro, ri) = (schedule.split(loop, [None, size])
                                    for loop, size in ((i, 8), (j, 32), (r, 4)))
    schedule.reorder(io, jo, ro, ri, ii, ji)
    tile = schedule.cache_write(block, 0, "global")
    schedule.reverse_compute_at(tile, jo)
    schedule.parallel(io)
    *_, unrolled, inner, lanes = schedule.get_loops(block)
    schedule.vectorize(lanes)
    schedule.unroll(inner)
    schedule.unroll(unrolled)
    schedule.decompose_reduction(block, ro)
    panel, _, lanes = schedule.get_loops(schedule.get_sblock("packed"))
    schedule.vectorize(lanes)
    schedule.parallel(panel)
    return schedule.mod


class Rows:
    """Stages over a matrix: all of a row on one thread, while it is in the cache."""

    def __init__(self, rows, columns):
        self.shape = (rows, columns)
        self.stages = []

    def reduced(self, name, kind, value):
        """A reduction of `value(row, column)` along the rows, sixteen lanes at a time."""
        rows, columns = self.shape
        steps = te.reduce_axis((0, columns // LANES), name=f"{name}_steps")
        lanes = te.compute((rows, LANES), lambda r, l: kind(value(r, steps * LANES + l), axis=steps),
                           name=f"{name}_lanes")
        lane = te.reduce_axis((0, LANES), name=f"{name}_lane")
        all_of_them = te.compute((rows,), lambda r: kind(lanes[r, lane], axis=lane), name=name)
        self.stages += [f"{name}_lanes", name]
        return all_of_them

    def each(self, name, value):
        stage = te.compute(self.shape, value, name=name)
        self.stages.append(name)
        return stage

    def module(self, inputs, result):
        schedule = Schedule(tvm.IRModule({"main": te.create_prim_func([*inputs, result])}))
        row, column = schedule.get_loops(schedule.get_sblock(self.stages[-1]))
        outer, row = schedule.split(row, [None, 8])
        schedule.parallel(outer)
        for name in reversed(self.stages[:-1]):
            schedule.compute_at(schedule.get_sblock(name), row, preserve_unit_loops=True)
        for name in self.stages:
            block = schedule.get_sblock(name)
            loops = schedule.get_loops(block)
            if name.endswith("_lanes"):
                schedule.reorder(loops[-1], loops[-2])
                schedule.vectorize(schedule.get_loops(block)[-1])
                schedule.decompose_reduction(block, schedule.get_loops(block)[-2])
            elif len(loops) > 3 or name == self.stages[-1]:
                *_, last = loops
                if schedule.get(last).extent == self.shape[1]:
                    schedule.vectorize(schedule.split(last, [None, LANES])[1])
        return schedule.mod


def softmax(rows, columns):
    x = te.placeholder((rows, columns), name="x")
    stages = Rows(rows, columns)
    peak = stages.reduced("peak", te.max, lambda r, c: x[r, c])
    below = te.compute((rows, columns), lambda r, c: x[r, c] - peak[r], name="below")
    power = topi.fast_exp(below)
    stages.stages += ["below", power.op.name]
    total = stages.reduced("total", te.sum, lambda r, c: power[r, c])
    result = stages.each("result", lambda r, c: power[r, c] / total[r])
    return stages.module([x], result)


def layer_norm(rows, columns):
    x = te.placeholder((rows, columns), name="x")
    gamma, beta = (te.placeholder((columns,), name=name) for name in ("gamma", "beta"))
    stages = Rows(rows, columns)
    count = np.float32(columns)
    total = stages.reduced("total", te.sum, lambda r, c: x[r, c])
    spread = stages.reduced("spread", te.sum, lambda r, c: (x[r, c] - total[r] / count)
                            * (x[r, c] - total[r] / count))
    factor = te.compute((rows,), lambda r: te.rsqrt(
        spread[r] / count + np.float32(kernel_peer.EPSILON)), name="factor")
    stages.stages.append("factor")
    result = stages.each("result", lambda r, c: (x[r, c] - total[r] / count) * factor[r]
                         * gamma[c] + beta[c])
    return stages.module([x, gamma, beta], result)


def make(problem, threads):
    module = {"gemm_f32": gemm, "softmax": softmax, "layer_norm": layer_norm}[problem.kind]
    compiled = tvm.compile(module(*problem.sizes),
                           tvm.target.Target({"kind": "llvm", "mcpu": host()}))
    tensors = [tvm.runtime.tensor(one) for one in problem.inputs]
    out = tvm.runtime.tensor(np.zeros(problem.output_shape(), np.float32))
    function = compiled["main"]
    return lambda: function(*tensors, out), out.numpy


def host():
    return tvm.get_global_func("target.llvm_get_system_cpu")()


if __name__ == "__main__":
    kernel_peer.main(make)
