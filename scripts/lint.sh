# shellcheck shell=bash
# Checks the source. Sourced by ./dev. Every complaint names the place and the repair.
source scripts/fmt.sh
: "${root:=$PWD}"

lint_format() {
  local bad
  bad=$(cpp_files | xargs -0 -r -P "$(jobs_count)" -n 16 clang-format-19 --dry-run -Werror 2>&1 |
    sed -n 's/^\([^: ]*\):\([0-9]*\):.*\[-Wclang-format-violations\]$/\1:\2/p' |
    sort -t: -k1,1 -k2,2n | sort -t: -k1,1 -u)
  [ -n "$bad" ] || return 0
  sed 's/$/: error: not formatted; run .\/dev fmt/' <<<"$bad" >&2
  return 1
}

# changed_files: files of this change. On a branch that is everything since it left origin/main, on
# main (as in CI) the last commit; --since=REV says otherwise. Files not yet committed always count.
changed_files() {
  local base=$lint_since
  if [ -z "$base" ] && git rev-parse -q --verify origin/main >/dev/null; then
    base=$(git merge-base HEAD origin/main || true)
  fi
  if [ -z "$lint_since" ] && { [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; }; then
    base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
  fi
  {
    git diff --name-only --diff-filter=d "$base"
    git ls-files --others --exclude-standard
  } | sort -u
}

# tidy_sources: the translation units that show the changed files to clang-tidy. A header is seen
# through the source or test beside it.
tidy_sources() {
  local file stem candidate
  changed_files | grep -E '^(src|tools|tests|bench)/.*\.(cpp|h)$' | while read -r file; do
    stem=${file%.*}
    for candidate in "$file" "$stem.cpp" "${stem}_test.cpp"; do
      if [[ $candidate == *.cpp ]] &&
        grep -qF "\"file\": \"$root/$candidate\"" build/compile_commands.json; then
        echo "$candidate"
        break
      fi
    done
  done | sort -u
}

# tidy_one FILE DEADLINE: the output only when something is wrong. After the deadline, files are
# reported as skipped, so that a change of the whole tree still ends.
tidy_one() {
  local left=$(($2 - $(date +%s))) output status=0 checks=''
  # A test is neither hot nor fed by strangers, and these checks take most of the time.
  [[ $1 != *_test.cpp ]] || checks='-performance-*,-clang-analyzer-*'
  if [ "$left" -le 0 ]; then
    echo "$1: note: clang-tidy ran out of time; run clang-tidy-19 -p build $1" >&2
    return 0
  fi
  output=$(timeout "$left" clang-tidy-19 -p build --quiet --checks="$checks" "$1" 2>/dev/null) || status=$?
  if [ $status = 124 ]; then
    echo "$1: note: clang-tidy ran out of time; run clang-tidy-19 -p build $1" >&2
  elif [ $status != 0 ]; then
    output=${output:-$1: error: clang-tidy-19 -p build $1 failed}
    echo "${output//$PWD\//}" >&2
    return 1
  fi
}

lint_tidy() {
  git rev-parse -q --verify HEAD >/dev/null 2>&1 || {
    echo "lint: no git history here, so clang-tidy has no changed files to look at" >&2
    return 0
  }
  configure release >/dev/null
  local files deadline
  mapfile -t files < <(tidy_sources)
  [ ${#files[@]} -ne 0 ] || return 0
  echo "lint: clang-tidy on ${#files[@]} files" >&2
  deadline=$(($(date +%s) + ${LOOM_TIDY_SECONDS:-600}))
  export -f tidy_one
  # shellcheck disable=SC2016  # the inner shell expands these
  printf '%s\0' "${files[@]}" |
    xargs -0 -P "$(jobs_count)" -I{} bash -c 'tidy_one "$1" "$2"' tidy {} "$deadline"
}

command_lint() {
  local tidy=1 failed=0 argument
  lint_since=''
  for argument in "$@"; do
    case $argument in
      --no-tidy) tidy=0 ;;
      --since=*)
        lint_since=$(git rev-parse -q --verify "${argument#--since=}^{commit}") ||
          die_usage "'${argument#--since=}' is not a revision"
        ;;
      *) die_usage "unknown argument '$argument' of lint" ;;
    esac
  done
  lint_format || failed=1
  python3 scripts/lint_structure.py || failed=1
  if [ $tidy = 1 ]; then lint_tidy || failed=1; fi
  if [ $failed = 0 ]; then echo "lint: clean"; else echo "lint: failed" >&2; fi
  return $failed
}
