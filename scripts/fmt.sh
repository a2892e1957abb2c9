# shellcheck shell=bash
# Formats the C and C++ files. Sourced by ./dev.

# cpp_files: every C and C++ file of the repository, NUL-separated.
cpp_files() {
  local folder folders=()
  for folder in src tools tests bench examples; do
    [ ! -d "$folder" ] || folders+=("$folder")
  done
  find "${folders[@]}" \( -name '*.cpp' -o -name '*.h' -o -name '*.c' \) -type f -print0 |
    sort -z
}

command_fmt() {
  [ $# -eq 0 ] || die_usage "fmt takes no arguments"
  cpp_files | xargs -0 -r -P "$(jobs_count)" -n 16 clang-format-19 -i
}
