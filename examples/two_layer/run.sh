#!/usr/bin/env bash
# Takes a two-layer perceptron from three source files to numbers, with weights from two formats.
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

say "The sources are canonical text."
run loom-format --check model.loom layers.loom kernels.loom

say "Weights, written twice: as GGUF and as safetensors. And an input of eight features."
for format in gguf safetensors; do
  run loom-weights make --output="$work/weights.$format" \
    mlp.up.weight=16x8xf32:iota:-1:0.015625 mlp.down.weight=4x16xf32:iota:0.5:-0.0078125
done
run loom-weights list "$work/weights.gguf"
run loom-weights make "$work/input.npy" 8xf32:iota:1:0.25

say "Link the model with the layers and the kernels, for four outputs."
run loom-link model.loom --library=layers.loom --library=kernels.loom --root=@perceptron \
  --specialize=@perceptron:outputs=4 --to=bc --output="$work/model.loombc"

say "Prepare the portable schedule and one request per kernel; compile a request to an object."
run loom-compile "$work/model.loombc" --root=@perceptron --format=loom-command \
  --output="$work/commands.json" --emit-command-artifacts="$work/commands" \
  --emit-kernel-requests="$work/kernel-requests"
run ls "$work/commands" "$work/kernel-requests"
run loom-compile "$work/kernel-requests/kernel-0.loombc" --target=x86_64 --output="$work/kernel-0.o"

say "Run it, with the weights of either file."
for format in gguf safetensors; do
  run loom-run "$work/model.loombc" --root=@perceptron --parameters="$work/weights.$format" \
    --input=%input="$work/input.npy" --fill=%hidden=16xf32:0 --fill=%output=4xf32:0 \
    --print=%input=8xf32 --print=%hidden=16xf32 --print=%output=4xf32 --print-schedule=text
done
