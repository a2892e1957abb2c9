#!/usr/bin/env bash
# Runs one libFuzzer program for a fixed short time; a crash, hang or leak fails.
# usage: fuzz.sh PROGRAM SEED_FOLDER CRASH_FOLDER
# The seed folder may be missing. LOOM_FUZZ_SECONDS sets the time (5). To replay a crash, run PROGRAM
# on the file that is named at the end.
set -euo pipefail
program=$1 seeds=$2 crashes=$3
seconds=${LOOM_FUZZ_SECONDS:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$crashes" "$scratch/corpus"
# libFuzzer adds what it finds to the first folder, so the checked-in seeds come second.
folders=("$scratch/corpus")
[ ! -d "$seeds" ] || folders+=("$seeds")
if ! "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -seed=1 \
  -artifact_prefix="$crashes/" "${folders[@]}" >"$scratch/log" 2>&1; then
  tail -n 150 "$scratch/log"
  exit 1
fi
grep -E '^Done ' "$scratch/log" || {
  echo "the fuzzer ended without its closing line"
  exit 1
}
