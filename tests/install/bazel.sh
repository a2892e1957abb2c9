#!/usr/bin/env bash
# Builds a library and a command product with the Bazel rules: bazel.sh <source folder> <bin folder>.
set -euo pipefail
command -v bazel >/dev/null || {
  echo "skipped: there is no bazel on PATH; Debian has it as bazel-bootstrap"
  exit 77
}
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

# A library of libraries hands on what they hold.
loom_library(name = "all_kernels", srcs = [], deps = [":kernels"])

loom_library(name = "wrong", srcs = ["wrong.loom"])

loom_command_binary(
    name = "model",
    srcs = ["model.loom"],
    deps = [":all_kernels"],
    roots = ["twice"],
    targets = ["x86_64"],
)
END
echo 'kernel.def export("wrong") @wrong(' >wrong.loom
PATH=$2:$PATH
build() {
  bazel --output_user_root="$work/bazel" --batch build --spawn_strategy=local --action_env=PATH \
    "$@" >"$work/log" 2>&1
}
build //:all_kernels //:model || { cat "$work/log"; exit 1; }
# The rules make what the programs make.
(cd bazel-bin/model && find . -type f | sort) >"$work/files"
diff - "$work/files" <<'END'
./commands/twice.loomcmd
./manifest.json
./requests/kernel-0.loombc
./x86_64/kernel-0.o
END
loom-compile model.loom --library=kernels.loom --root=@twice --format=loom-command \
  --output="$work/manifest.json" --emit-command-artifacts="$work/commands" \
  --emit-kernel-requests="$work/requests"
cmp "$work/commands/twice.loomcmd" bazel-bin/model/commands/twice.loomcmd
cmp "$work/requests/kernel-0.loombc" bazel-bin/model/requests/kernel-0.loombc
# A library is verified where it is built.
if build //:wrong; then
  echo "a module that does not parse was built"
  exit 1
fi
grep -q '^wrong.loom:2:1: error\[PARSE' "$work/log" || { cat "$work/log"; exit 1; }
