#!/usr/bin/env bash
# Runs y = relu(0.5 * x - 2) over ten elements, straight from the source file.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

say "An input array: 0, 1, ... 9."
run loom-weights make "$work/x.npy" 10xf32:iota:0:1

say "One command links, prepares, compiles and runs the program for ten elements."
run loom-run elementwise.loom --root=@chain --specialize=@chain:n=10 \
  --input=%x="$work/x.npy" --fill=%y=10xf32:0 --print=%x=10xf32 --print=%y=10xf32 --print-schedule=text
