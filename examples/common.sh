# Shared by the run scripts: finds the programs and shows each command before running it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
bin=${LOOM_BIN:-$here/../../build/bin}
[ -x "$bin/loom-run" ] || { echo "the programs are not in $bin: run ./dev build first" >&2; exit 3; }
bin=$(cd "$bin" && pwd)
PATH=$bin:$PATH
# Everything an example writes goes to a folder of its own, removed at the end.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here"

say() { printf '\n# %s\n' "$*"; }
run() {
  local words=() word
  for word in "$@"; do words+=("${word//$work/\$work}"); done
  printf '$'
  printf ' %q' "${words[@]}" | sed 's/\\\$work/$work/g; s/\\@/@/g; s/\\%/%/g; s/\\=/=/g; s/\\,/,/g; s/\\{/{/g; s/\\}/}/g; s/\\\[/[/g; s/\\\]/]/g'
  printf '\n'
  "$@"
}
