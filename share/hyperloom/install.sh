#!/usr/bin/env bash
# Sets up the kernel tools for a data root. A second run changes nothing.
#
#   install.sh [--with=tracelens,geak,ray]
#
# Writes $USER_DATA_PATH/runtime/kernel-agent.env.sh, to be sourced, and .env beside this script.
# The optimizer needs neither: `geak` is its own default, and it finds its files by itself.
# Exit status: 0 done; 2 wrong usage; 3 something cannot be written, or a tool of --with is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

usage() { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

# write_once FILE: standard input becomes the file, which is replaced only when it differs.
write_once() {
  local fresh
  mkdir -p "$(dirname "$1")" 2>/dev/null && fresh=$(mktemp "$1.XXXXXX" 2>/dev/null) || {
    echo "install: error: cannot write $1; set USER_DATA_PATH to a folder of yours, or run as its owner" >&2
    return 3
  }
  cat >"$fresh"
  chmod 0644 "$fresh"
  if cmp -s "$fresh" "$1"; then
    rm -f "$fresh"
    echo "install: $1 is up to date"
  else
    mv -f "$fresh" "$1"
    echo "install: wrote $1"
  fi
}

data_root() {
  if [ -n "${USER_DATA_PATH:-}" ]; then
    echo "$USER_DATA_PATH"
  elif [ -d /workspace/hyperloom ] && [ -w /workspace/hyperloom ]; then
    echo /workspace/hyperloom
  else
    echo "$PWD/session"
  fi
}

# optional_tool NAME: says what the tool needs; fails when that is not there.
optional_tool() {
  case $1 in
    tracelens)
      if [ -n "${TRACELENS_ROOT:-}" ] && [ -d "$TRACELENS_ROOT" ]; then
        echo "install: tracelens: $TRACELENS_ROOT"
        return 0
      fi
      echo "install: tracelens needs TRACELENS_ROOT to name a checkout of TraceLens, Python 3 and" \
        "its requirements; only traces of other programs are read with it" >&2
      ;;
    geak)
      if [ -n "${GEAK_CONFIG:-}" ] && [ -f "$GEAK_CONFIG" ] && [ -n "${ANTHROPIC_API_KEY:-}" ]; then
        echo "install: geak: $GEAK_CONFIG"
        return 0
      fi
      echo "install: the external geak runner needs GEAK_CONFIG to name its configuration," \
        "ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL; the built-in geak search needs nothing" >&2
      ;;
    ray)
      if command -v ray >/dev/null; then
        echo "install: ray: $(command -v ray)"
        return 0
      fi
      echo "install: ray needs the 'ray' program on PATH (Python package ray); only work on several" \
        "nodes uses it" >&2
      ;;
    *)
      echo "install: error: '$1' is no optional tool; there are tracelens, geak and ray" >&2
      exit 2
      ;;
  esac
  return 3
}

main() {
  local argument with='' tool status=0
  for argument in "$@"; do
    case $argument in
      --with=*) with=${argument#--with=} ;;
      -h | --help)
        usage
        return 0
        ;;
      *)
        echo "install: error: unknown argument '$argument'; see install.sh --help" >&2
        return 2
        ;;
    esac
  done
  local root
  root=$(data_root)
  write_once "$root/runtime/kernel-agent.env.sh" <<END || return 3
# Written by install.sh; source it before a session.
export USER_DATA_PATH=\${USER_DATA_PATH:-$(printf %q "$root")}
export HYPERLOOM_KERNEL_AGENT_ROOT=\${HYPERLOOM_KERNEL_AGENT_ROOT:-$(printf %q "$here")}
export KERNEL_OPT_BACKEND_ORDER=\${KERNEL_OPT_BACKEND_ORDER:-geak}
END
  write_once "$here/.env" <<'END' || return 3
KERNEL_OPT_BACKEND_ORDER=${KERNEL_OPT_BACKEND_ORDER:-geak}
END
  for tool in ${with//,/ }; do
    optional_tool "$tool" || status=3
  done
  return $status
}

main "$@"
