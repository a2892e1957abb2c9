"""The main program of the sides of suite `kernels` that are Python packages: the problems, their right
answers, and the timing loop, as kernel_problem.cpp and timing.h have them for the C++ sides.

Runs in the Python of a peer, with its NumPy.
"""

import json
import statistics
import sys
import time

import numpy as np

EPSILON = 1e-5
PLACES = 150


class Problem:
    """Inputs of a case "KIND:SIZE:SIZE:SIZE", the same in every process."""

    def __init__(self, name):
        self.name = name
        self.kind, *sizes = name.split(":")
        self.sizes = [int(size) for size in sizes]
        numbers = _integers if self.kind == "gemm_i8" else _numbers
        self.inputs = [numbers(shape, seed) for seed, shape in enumerate(self._shapes())]

    def _shapes(self):
        if self.kind.startswith("gemm"):
            *batch, m, n, k = self.sizes
            return [(*batch, m, k), (*batch, k, n)]
        if self.kind == "attention":
            return [tuple(self.sizes)] * 3
        rows, columns = self.sizes
        vectors = {"softmax": 0, "rms_norm": 1, "layer_norm": 2}[self.kind]
        return [(rows, columns)] + [(columns,)] * vectors

    def output_shape(self):
        return tuple(self.sizes[:-1]) if self.kind.startswith("gemm") else self.inputs[0].shape

    def check(self, output):
        """ValueError where places of the output differ from what they must be, in double."""
        output = np.asarray(output)
        if output.shape != self.output_shape():
            raise ValueError(f"{self.name}: the shape is {output.shape}")
        random = np.random.default_rng(7)
        for _ in range(PLACES):
            place = tuple(int(random.integers(size)) for size in output.shape)
            want, tolerance = self._expected(place)
            if not abs(float(output[place]) - want) <= tolerance:
                raise ValueError(f"{self.name}: element {place} is {output[place]} instead of {want}")

    def _expected(self, place):
        first = self.inputs[0][place[:-1]].astype(np.float64)
        if self.kind.startswith("gemm"):
            second = self.inputs[1][(*place[:-2], slice(None), place[-1])].astype(np.float64)
            if self.kind == "gemm_bf16":
                first, second = _as_bf16(first), _as_bf16(second)
            products = first * second
            rounding = 0.01 * abs(products.sum()) if self.kind == "gemm_bf16" else 0
            return products.sum(), 2e-6 * np.abs(products).sum() + 1e-6 + rounding
        if self.kind == "softmax":
            powers = np.exp(first - first.max())
            want = powers[place[-1]] / powers.sum()
            return want, 1e-5 * want
        if self.kind == "attention":
            keys, values = (one[place[0]].astype(np.float64) for one in self.inputs[1:])
            scores = keys @ first / np.sqrt(first.size)
            powers = np.exp(scores - scores.max())
            return powers @ values[:, place[-1]] / powers.sum(), 1e-5
        gain = float(self.inputs[1][place[-1]])
        if self.kind == "rms_norm":
            return first[place[-1]] / np.sqrt(np.mean(first * first) + EPSILON) * gain, 1e-5
        scaled = (first[place[-1]] - first.mean()) / np.sqrt(first.var() + EPSILON)
        return scaled * gain + float(self.inputs[2][place[-1]]), 1e-5


def _numbers(shape, seed):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def _integers(shape, seed):
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)


def _as_bf16(values):
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def median_ns(budget_ms, work):
    """Of one `work()`: the median over batches of at least 20 us, until the budget has passed."""
    work()
    begin = time.perf_counter_ns()
    work()
    batch = max(1, 20000 // max(1, time.perf_counter_ns() - begin))
    samples = []
    end = time.perf_counter_ns() + budget_ms * 1_000_000
    while len(samples) < 3 or time.perf_counter_ns() < end:
        start = time.perf_counter_ns()
        for _ in range(batch):
            work()
        samples.append((time.perf_counter_ns() - start) / batch)
    return statistics.median(samples)


def main(make):
    """BUDGET_MS CASE@THREADS...: prints one JSON object of case and nanoseconds.

    `make(problem, threads)` returns `work`, which computes once, and `output`, which then gives the
    result as an array.
    """
    budget_ms = int(sys.argv[1])
    times, problem = {}, None
    for name in sys.argv[2:]:
        case, threads = name.split("@")
        if problem is None or problem.name != case:
            problem = Problem(case)
        work, output = make(problem, int(threads))
        work()
        problem.check(output())
        times[name] = median_ns(budget_ms, work)
    print(json.dumps(times))
