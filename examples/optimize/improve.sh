#!/usr/bin/env bash
# Lets the optimizer improve a copy of the program, then times what it kept against the original, in
# turns.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

export USER_DATA_PATH=$work/data
cp poor.loom workload.json "$work"

say "Optimize the copy: baseline, profile, one search over the whole program, re-measured in pairs."
run hyperloom optimize "$work/workload.json" --session=demo --budget=100s

say "The configuration that was kept, as flags of the other programs."
run hyperloom report demo --format=flags

say "The original and what was kept, five times in turns: median microseconds of one issue."
run loom-weights make "$work/input.npy" 64x256xf32:random:1:-1:1
run loom-weights make "$work/weights.npy" 256x256xf32:random:2:-0.1:0.1
run loom-weights make "$work/bias.npy" 256xf32:random:3:-0.5:0.5
mapfile -t kept < <(hyperloom report demo --format=flags)
[ ${#kept[@]} -ne 0 ] || kept=(--config=project.columns=1)

# median SOURCE FLAG...: of one issue of the program, in microseconds.
median() {
  loom-run "$@" --root=@layer --specialize=@layer:rows=64 --input=%input="$work/input.npy" \
    --input=%weights="$work/weights.npy" --input=%bias="$work/bias.npy" \
    --fill=%hidden=64x256xf32:0 --fill=%totals=64xf32:0 --repeat=60 --time |
    sed -n 's/^issued.*median \([0-9.]*\) us.*/\1/p'
}
for round in 1 2 3 4 5; do
  before=$(median poor.loom --config=project.columns=1)
  after=$(median "$work/poor.loom" "${kept[@]}")
  awk -v r="$round" -v a="$before" -v b="$after" \
    'BEGIN { printf "round %d: original %10.1f us, kept %10.1f us, %5.2f times as fast\n", r, a, b, a / b }'
done
