#!/usr/bin/env bash
# Builds a library and a command product with the Bazel rules: bazel.sh <source folder> <bin folder>.
# Skipped where bazel is missing (Debian: bazel-bootstrap).
set -euo pipefail
command -v bazel >/dev/null || exit 77
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir "$work/project"
cd "$work/project"
touch WORKSPACE
cp "$1/bazel/loom.bzl" .
program=$(grep -n '^command.program.def' "$1/examples/embed/double.loom" | cut -d: -f1)
head -n $((program - 1)) "$1/examples/embed/double.loom" >kernels.loom
{
  echo 'kernel.decl export("double") @double() launch(%from: buffer, %to: buffer)'
  tail -n +"$program" "$1/examples/embed/double.loom"
} >model.loom
cat >BUILD <<'END'
load(":loom.bzl", "loom_command_binary", "loom_library")

loom_library(name = "kernels", srcs = ["kernels.loom"])

loom_command_binary(
    name = "model",
    srcs = ["model.loom"],
    deps = [":kernels"],
    roots = ["twice"],
    targets = ["x86_64"],
)
END
PATH=$2:$PATH
bazel --output_user_root="$work/bazel" --batch build --spawn_strategy=local --action_env=PATH \
  //:kernels //:model >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
test -s bazel-bin/model/manifest.json
test -s bazel-bin/model/commands/twice.loomcmd
test -s bazel-bin/model/requests/kernel-0.loombc
test -s bazel-bin/model/x86_64/kernel-0.o
