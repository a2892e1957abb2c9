# shellcheck shell=bash
# Makes the programs that benchmarks are compared with available. Sourced by ./dev.
#
# A peer that cannot be installed does not stop a benchmark: its path stays empty and the reason is
# in the variable beside it, for the benchmark to print in the peer's place.
#   LOOM_MLIR_OPT     mlir-opt of LLVM 19         LOOM_MLIR_OPT_MISSING     why it is empty
#   LOOM_IREE_PYTHON  a Python that has IREE      LOOM_IREE_PYTHON_MISSING  why it is empty
#   LOOM_TUNER_PYTHON  one that has Kernel Tuner  LOOM_TUNER_PYTHON_MISSING  why it is empty
#   LOOM_TORCH_PYTHON  one that has PyTorch       LOOM_TORCH_PYTHON_MISSING  why it is empty
#   LOOM_TVM_PYTHON   one that has TVM            LOOM_TVM_PYTHON_MISSING   why it is empty
export LOOM_MLIR_OPT='' LOOM_MLIR_OPT_MISSING='' LOOM_IREE_PYTHON='' LOOM_IREE_PYTHON_MISSING=''
export LOOM_TUNER_PYTHON='' LOOM_TUNER_PYTHON_MISSING=''
export LOOM_TORCH_PYTHON='' LOOM_TORCH_PYTHON_MISSING=''
export LOOM_TVM_PYTHON='' LOOM_TVM_PYTHON_MISSING=''

: "${root:=$PWD}"

# prepare_peers SUITE
prepare_peers() {
  local missing
  mapfile -t missing < <(missing_packages scripts/packages-bench.txt)
  if [ ${#missing[@]} -ne 0 ] && [ -z "${LOOM_SKIP_SETUP:-}" ]; then
    if try_install "${missing[@]}"; then
      touch bench/CMakeLists.txt # so that the build looks for the new libraries
    else
      echo "bench: without ${missing[*]}" >&2
    fi
  fi
  LOOM_MLIR_OPT=$(command -v mlir-opt-19 || true)
  [ -n "$LOOM_MLIR_OPT" ] || LOOM_MLIR_OPT_MISSING='the package mlir-19-tools is not installed'
  prepare_python LOOM_IREE_PYTHON IREE bench-venv bench-requirements.txt
  case $1 in
    hyperloom) prepare_python LOOM_TUNER_PYTHON 'Kernel Tuner' tuner-venv tuner-requirements.txt ;;
    kernels)
      prepare_python LOOM_TORCH_PYTHON PyTorch torch-venv torch-requirements.txt
      prepare_python LOOM_TVM_PYTHON TVM tvm-venv tvm-requirements.txt
      ;;
  esac
}

# prepare_python VARIABLE NAME FOLDER REQUIREMENTS: a Python of its own for each peer, below build/,
# so that what one requires cannot keep another from being installed.
prepare_python() {
  local variable=$1 name=$2 venv=$root/build/$3 requirements=scripts/$4
  local log=$venv.log
  # The mark is written last, so that an interrupted installation is started over.
  if ! cmp -s "$requirements" "$venv/installed.txt"; then
    echo "bench: installing $name into build/$3" >&2
    mkdir -p build
    rm -rf "$venv"
    if ! python3 -m venv "$venv" >"$log" 2>&1; then
      printf -v "${variable}_MISSING" '%s' 'python3 -m venv failed; is python3-venv installed?'
      return
    fi
    if ! "$venv/bin/pip" install --disable-pip-version-check -r "$requirements" \
      >>"$log" 2>&1 </dev/null; then
      printf -v "${variable}_MISSING" 'pip could not install it: %s' \
        "$(grep -m1 '^ERROR' "$log" || tail -n 1 "$log")"
      return
    fi
    cp "$requirements" "$venv/installed.txt"
  fi
  printf -v "$variable" '%s' "$venv/bin/python"
}
