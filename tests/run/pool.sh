#!/usr/bin/env bash
# Runs the pool of examples/embed with an empty folder and with all code in it:
# pool.sh PROGRAM STAGES FOLDER
set -euo pipefail
rm -rf "$3"
for run in empty full; do
  output=$("$1" "$2" "$3")
  [[ $output == $'4 requests\n-1 0 3 8' ]] || {
    printf 'with the %s folder:\n%s\n' "$run" "$output"
    exit 1
  }
done
