#!/usr/bin/env bash
# The program that `hyperloom optimize` improves, run as it is and as it could be: the same results.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

say "The source is canonical text."
run loom-format --check poor.loom

say "Inputs, weights and biases."
run loom-weights make "$work/input.npy" 64x256xf32:iota:0:0.0001
run loom-weights make "$work/weights.npy" 256x256xf32:iota:-0.0625:0.000002
run loom-weights make "$work/bias.npy" 256xf32:0.25

for columns in 1 64; do
  say "Blocks of $columns: what the optimizer may choose, and what changes nothing."
  run loom-run poor.loom --root=@layer --specialize=@layer:rows=64 --config=project.columns=$columns \
    --input=%input="$work/input.npy" --input=%weights="$work/weights.npy" \
    --input=%bias="$work/bias.npy" --fill=%hidden=64x256xf32:0 --fill=%totals=64xf32:0 \
    --output=%totals=64xf32:"$work/totals-$columns.npy" --print-schedule=text
done
run cmp "$work/totals-1.npy" "$work/totals-64.npy"
