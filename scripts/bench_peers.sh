# shellcheck shell=bash
# Makes the programs that benchmarks are compared with available. Sourced by ./dev.
#
# A peer that cannot be installed does not stop a benchmark: its path stays empty and the reason is
# in the variable beside it, for the benchmark to print in the peer's place.
#   LOOM_MLIR_OPT     mlir-opt of LLVM 19         LOOM_MLIR_OPT_MISSING     why it is empty
#   LOOM_IREE_PYTHON  a Python that has IREE      LOOM_IREE_PYTHON_MISSING  why it is empty
export LOOM_MLIR_OPT='' LOOM_MLIR_OPT_MISSING='' LOOM_IREE_PYTHON='' LOOM_IREE_PYTHON_MISSING=''

: "${root:=$PWD}"

prepare_peers() {
  local missing
  mapfile -t missing < <(missing_packages scripts/packages-bench.txt)
  if [ ${#missing[@]} -ne 0 ] && [ -z "${LOOM_SKIP_SETUP:-}" ]; then
    try_install "${missing[@]}" || echo "bench: without ${missing[*]}" >&2
  fi
  LOOM_MLIR_OPT=$(command -v mlir-opt-19 || true)
  [ -n "$LOOM_MLIR_OPT" ] || LOOM_MLIR_OPT_MISSING='the package mlir-19-tools is not installed'
  prepare_iree
}

prepare_iree() {
  local venv=$root/build/bench-venv log=$root/build/bench-venv.log
  # The mark is written last, so that an interrupted installation is started over.
  if ! cmp -s scripts/bench-requirements.txt "$venv/installed.txt"; then
    echo "bench: installing IREE into build/bench-venv" >&2
    mkdir -p build
    rm -rf "$venv"
    if ! python3 -m venv "$venv" >"$log" 2>&1; then
      LOOM_IREE_PYTHON_MISSING='python3 -m venv failed; is python3-venv installed?'
      return
    fi
    if ! "$venv/bin/pip" install --disable-pip-version-check -r scripts/bench-requirements.txt \
      >>"$log" 2>&1 </dev/null; then
      LOOM_IREE_PYTHON_MISSING="pip could not install it: $(grep -m1 '^ERROR' "$log" || tail -n 1 "$log")"
      return
    fi
    cp scripts/bench-requirements.txt "$venv/installed.txt"
  fi
  LOOM_IREE_PYTHON=$venv/bin/python
}
