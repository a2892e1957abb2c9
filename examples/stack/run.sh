#!/usr/bin/env bash
# Expands a loop over model blocks: the depth is configuration, the active prefix a specialization.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

say "Weights of six blocks, by pattern: block k holds k/2, k/2 + 1/16, k/2 + 2/16 ..."
run loom-weights make --output="$work/blocks.gguf" "block.{0..5}.weight=8xf32:iota:0:0.0625"

say "Which keys does the model leave open?"
run loom-link stack.loom --print-config-schema

say "Six blocks over six of the eight elements; the rest of the state stays as it was."
run loom-run stack.loom --root=@stack --config=stack.depth=6 --specialize=@stack:active=6 \
  --parameters="$work/blocks.gguf" --fill=%state=8xf32:1 --print=%state=8xf32 --print-schedule=text
