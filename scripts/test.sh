# shellcheck shell=bash
# Builds and runs the tests. Sourced by ./dev.

# run_ctest PRESET [CTEST ARGS...]: keeps the output in the build folder for the closing lines.
run_ctest() {
  local preset=$1 folder
  shift
  folder=$(preset_folder "$preset")
  ctest --test-dir "$folder" -j "$(jobs_count)" --output-on-failure --no-tests=error "$@" |
    tee "$folder/test.log"
}

# closing_line PRESET: ctest's own summary, named by the build it belongs to.
closing_line() {
  local summary
  summary=$(grep -E '[0-9]+ tests? failed out of|^No tests' "$(preset_folder "$1")/test.log" || true)
  echo "$1: ${summary:-the tests did not run to their end}"
}

command_test() {
  local filter='' release=1 asan=1 tsan=0 failed=0 argument
  for argument in "$@"; do
    case $argument in
      --filter=*) filter=${argument#--filter=} ;;
      --release-only) asan=0 ;;
      --asan-only) release=0 ;;
      --tsan-only) release=0 asan=0 tsan=1 ;;
      *) die_usage "unknown argument '$argument' of test" ;;
    esac
  done
  if [ -n "$filter" ] && [ $release = 1 ]; then asan=0; fi
  local summary=()
  if [ $release = 1 ]; then
    build_targets release
    run_ctest release ${filter:+-R "$filter"} || failed=1
    summary+=("$(closing_line release)")
  fi
  if [ $asan = 1 ]; then
    build_targets asan
    # Everything else runs the same code through larger programs, too slowly under sanitizers.
    run_ctest asan -R "${filter:-^(unit|golden|fuzz)[.]}" || failed=1
    summary+=("$(closing_line asan)")
  fi
  if [ $tsan = 1 ]; then
    # What threads do together: issues, the partner, the cache, workers and the pool of the example.
    build_targets tsan cache_test runtime_cpu_test run_test c_api_test embed_pool
    TSAN_OPTIONS="suppressions=$root/tests/tsan.supp halt_on_error=1 second_deadlock_stack=1" \
      run_ctest tsan -L '^concurrent$' ${filter:+-R "$filter"} || failed=1
    summary+=("$(closing_line tsan)")
  fi
  printf '%s\n' "${summary[@]}"
  return $failed
}
