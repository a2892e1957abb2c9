# shellcheck shell=bash
# Configures and builds CMake presets. Sourced by ./dev, which sets `root`.

# Paths relative to the checkout let two checkouts share one compiler cache.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
export CCACHE_NOHASHDIR=1

jobs_count() { echo "${LOOM_JOBS:-$(nproc)}"; }

preset_folder() {
  case $1 in
    release) echo build ;;
    asan) echo build-asan ;;
    tsan) echo build-tsan ;;
  esac
}

# configure PRESET: once, and again when the presets change; Ninja sees every other change itself.
configure() {
  local folder
  folder=$(preset_folder "$1")
  if [ ! -f "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/build.ninja" ]; then
    cmake --preset "$1"
  fi
}

# build_targets PRESET [TARGET...]: everything when no target is named.
build_targets() {
  local preset=$1
  shift
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  configure "$preset"
  cmake --build --preset "$preset" -j "$(jobs_count)" "${targets[@]}"
}
