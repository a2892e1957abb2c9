#!/usr/bin/env bash
# Runs two branches that may overlap, then a join that waits for both.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

say "A gain for each channel, and an input."
run loom-weights make --output="$work/gains.safetensors" \
  channel.0.gain=4xf32:iota:1:1 channel.1.gain=4xf32:10
run loom-weights make "$work/input.npy" 4xf32:iota:1:1

say "The schedule says what may overlap: equal wave numbers under one concurrent node."
run loom-run fork_join.loom --root=@stereo --parameters="$work/gains.safetensors" \
  --input=%input="$work/input.npy" --fill=%scratch=8xf32:0 --fill=%output=4xf32:0 \
  --print=%scratch=8xf32 --print=%output=4xf32 --print-schedule=text

say "The same tree for Graphviz."
run loom-compile fork_join.loom --root=@stereo --print-schedule=dot --output="$work/commands.json"
