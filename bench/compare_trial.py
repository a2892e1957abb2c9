#!/usr/bin/env python3
"""Holds loom-bench --compare to what it promises: a benchmark against itself is called different at
most 3 times in 100, and a slowdown of 5% is seen at least 95 times in 100.

    bench/compare_trial.py [--bin=build/bin] [--trials=100] [--min-time=1.5]

Prints one line a kind and ends with status 1 when a promise is not kept. The same statistics over
simulated machines are a unit test; this is the machine at hand, with whatever else it does.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

# A chain of dependent operations, whose length is the whole difference.
MODULE = """kernel.def @chain(%steps: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%steps: index, %x: buffer, %y: buffer) {
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %scale = scalar.constant 0.999 : f32
  %step = scalar.constant 0.25 : f32
  %source = buffer.view %x[%base] : buffer -> view<16xf32>
  %target = buffer.view %y[%base] : buffer -> view<16xf32>
  %first = view.load %source[0] : view<16xf32> -> f32
  %sum = scf.for %i = [%zero to %steps step %one](%acc = %first : f32) -> (f32) {
    %scaled = scalar.mulf %acc, %scale : f32
    %next = scalar.addf %scaled, %step : f32
    scf.yield %next : f32
  }
  view.store %sum, %target[0] : f32, view<16xf32>
  kernel.return
}

check.case @chain_settles {
  %steps = check.param.choice values([2000, 2100]) name("steps") : index
  %x = check.generate.fill value(250.0) : tensor<16xf32>
  %y = check.generate.fill value(0.0) : tensor<16xf32>
  kernel.launch @chain[%steps](%steps, %x, %y) : [index](index, tensor<16xf32>, tensor<16xf32>)
  %one = check.tensor.view %y offset(0) : tensor<16xf32> -> tensor<1xf32>
  %fixed = check.generate.fill value(250.0) : tensor<1xf32>
  check.expect.close actual(%one) expected(%fixed) atol(0.01) rtol(0.0) nan(same) : tensor<1xf32>
  check.return
}

check.benchmark<@chain_settles> @plain {steps = 2000}

check.benchmark<@chain_settles> @slower {steps = 2100}
"""
MOST_FALSE = 3
LEAST_SEEN = 95


def compare(options, module, other):
    command = [os.path.join(options.bin, "loom-bench"), module, f"--compare=@plain,@{other}",
               f"--min-time={options.min_time}", "--threads=1",
               "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"loom-bench ended with status {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["comparisons"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--min-time", type=float, default=1.5)
    options = parser.parse_args()
    false, seen, ratios, longest = 0, 0, [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        module = os.path.join(folder, "chain.loom")
        with open(module, "w", encoding="utf-8") as text:
            text.write(MODULE)
        for trial in range(options.trials):
            same = compare(options, module, "plain")
            slower = compare(options, module, "slower")
            false += same.get("different", False)
            seen += slower.get("different", False) and slower["ratio"] > 1
            ratios.append(slower.get("ratio", 0.0))
            longest = max(longest, same["seconds"], slower["seconds"])
            print(f"\r{trial + 1}/{options.trials}: {false} false, {seen} seen", end="",
                  file=sys.stderr, flush=True)
    print(file=sys.stderr)
    ratios.sort()
    scale = options.trials / 100
    print(f"a benchmark against itself: different {false} times of {options.trials}")
    print(f"a slowdown of 5%: seen {seen} times of {options.trials}; ratio {ratios[0]:.4f} to "
          f"{ratios[-1]:.4f}, median {ratios[len(ratios) // 2]:.4f}")
    print(f"the longest comparison took {longest:.1f} s")
    return 0 if false <= MOST_FALSE * scale and seen >= LEAST_SEEN * scale and longest <= 10.5 else 1


if __name__ == "__main__":
    sys.exit(main())
