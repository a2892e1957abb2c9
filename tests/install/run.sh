#!/usr/bin/env bash
# Installs the package, builds the applications of examples/embed against it, outside of this tree,
# and runs them and what loom_command_binary() made:  run.sh <source folder> <build folder>
set -euo pipefail
source_folder=$1
build_folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build_folder" --prefix "$work/installed" >/dev/null
cp -r "$source_folder/examples/embed" "$work/embed"
cmake -S "$work/embed" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" >/dev/null
cmake --build "$work/build" >/dev/null
expect() {
  if [[ $1 != "$2" ]]; then
    printf 'expected:\n%s\nbut got:\n%s\n' "$1" "$2"
    exit 1
  fi
}
# Each header stands alone and warns of nothing: in C++20, those of C in C11 and C++17, too.
(cd "$work/installed/include" && find loom -name '*.h') | while read -r header; do
  dialects=(c++20)
  case $header in */loom_c.h | */kernel_abi.h) dialects+=(c11 c++17) ;; esac
  for dialect in "${dialects[@]}"; do
    echo "#include \"$header\"" | c++ -x "${dialect%%[0-9]*}" -std="$dialect" -I"$work/installed/include" \
      -Wall -Wextra -Wpedantic -Werror -fsyntax-only -
  done
done

expect $'4 8 12 16\n8 12 16 20' "$("$work/build/embed_cpp" "$work/embed/double.loom")"
for run in 1 2; do
  expect $'4 8 12 16\n8 12 16 20' \
    "$("$work/build/embed_cpp" "$work/embed/double.loom" "$work/kernels")"
done
expect 2 "$(find "$work/kernels" -type f | wc -l)" # one kernel, and the bytes in use
expect $'4 8 12 16\n4 8 12 160' \
  "$("$work/build/embed_c" "$work/embed/double.loom")"
expect "$(
  cat <<'END'
configuration key @factor value(%value: index) where [range(%value, 1, 100)]
kernel @scale config(%n: index) body(%from: buffer, %to: buffer)
command program @run body(%input: buffer, %output: buffer)
function @scale_ref body(%x: i32) results(%17: i32)
check case @run_matches
benchmark @run_speed
10 20 30 40
@scale [4, 1, 1], 2 operands, timed
-1 -2 -3 -4
@scale [4, 1, 1], 2 operands, timed
END
)" "$("$work/build/embed_rewrite" "$work/embed/scaled.loom")"
for run in 1 2; do # the second time all code comes from the folder
  expect $'4 requests\n-1 0 3 8' "$("$work/build/embed_pool" "$work/embed/stages.loom" "$work/pool")"
  expect 5 "$(find "$work/pool" -type f | wc -l)"
done

expect '0.5 1 1.5 2' "$("$work/build/embed_library")"
expect '' "$(ldd "$work/build/embed_library" | grep 'libloom')"

# An application that was compiled against a later header is refused before it does anything.
mkdir -p "$work/later/loom/api"
sed 's/^#define LOOM_ABI_VERSION .*/#define LOOM_ABI_VERSION 999/' \
  "$work/installed/include/loom/api/loom_c.h" >"$work/later/loom/api/loom_c.h"
cc -std=c11 -I"$work/later" "$work/embed/embed.c" -o "$work/embed_later" \
  -L"$work/installed/lib" -lloom -Wl,-rpath,"$work/installed/lib"
status=0
output=$("$work/embed_later" "$work/embed/double.loom" 2>&1) || status=$?
expect '1 the Loom library is older than this program' "$status $output"

made=$work/build/double_command
expect $'commands\nmanifest.json\nrequests\nx86_64' "$(LC_ALL=C ls "$made")"
expect 'twice.loomcmd kernel-0.loombc kernel-0.o' \
  "$(ls "$made/commands") $(ls "$made/requests") $(ls "$made/x86_64")"
"$work/installed/bin/loom-report" show "$made/commands/twice.loomcmd" | grep -q 'cmd.core.dispatch'
