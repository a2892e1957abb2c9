# shellcheck shell=bash
# Finds and installs missing Debian packages. Sourced by ./dev.

# missing_packages FILE: the packages of the list that are not installed, one a line.
missing_packages() {
  local wanted
  mapfile -t wanted < <(grep -v '^#' "$1")
  # dpkg-query fails when any package is unknown to it; what it does print is all that is needed.
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
  local package
  for package in "${wanted[@]}"; do
    grep -qxF "installed $package" <<<"$installed" || echo "$package"
  done
}

# try_install PACKAGE...: installs without prompts; fails with a reason on standard error.
try_install() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "setup: this user may not install packages without a password" >&2
      return 1
    fi
    as_root=(sudo -n)
  fi
  local log
  log=$(mktemp)
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o DPkg::Lock::Timeout=300)
  echo "setup: installing $*" >&2
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "$@"; } \
    >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# ensure_packages FILE: silent when nothing is missing; exits 3 when something stays missing.
ensure_packages() {
  [ -z "${LOOM_SKIP_SETUP:-}" ] || return 0
  if ! command -v dpkg-query >/dev/null; then
    {
      echo "setup: this is not a Debian system; install the equivalents of these Debian 12 packages"
      echo "and set LOOM_SKIP_SETUP=1:"
      grep -v '^#' "$1" | sed 's/^/  /'
    } >&2
    exit 3
  fi
  local missing
  mapfile -t missing < <(missing_packages "$1")
  [ ${#missing[@]} -ne 0 ] || return 0
  if ! try_install "${missing[@]}"; then
    {
      echo "setup: packages are missing; run this as root, then try again:"
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    } >&2
    exit 3
  fi
}
