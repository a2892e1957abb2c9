#include "hyperloom/trace/categories.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <vector>

namespace hyperloom::trace {
namespace {

struct Row {
  int priority;
  std::string_view category;
  std::string_view word;
};
constexpr Row kRows[] = {
#define HL_CATEGORY(priority, category, word) {priority, category, word},
#include "hyperloom/trace/categories.def"
#undef HL_CATEGORY
};
constexpr int kCommunication = 28;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool begins =
        std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (std::isalnum(c) == 0 || begins) words.emplace_back();
    if (std::isalnum(c) != 0) words.back() += lower(name[i]);
  }
  std::erase(words, "");
  return words;
}

}  // namespace

bool is_collective_name(std::string_view kernel) {
  const std::vector<std::string> words = words_of(kernel);
  const auto holds = [&](std::initializer_list<std::string_view> sequence) {
    return !std::ranges::search(words, sequence).empty();
  };
  return holds({"nccl"}) || holds({"rccl"}) || holds({"all", "reduce"}) || holds({"allreduce"}) ||
         holds({"all", "gather"}) || holds({"allgather"}) || holds({"reduce", "scatter"}) ||
         holds({"all", "to", "all"}) || holds({"alltoall"}) || holds({"cross", "device", "reduce"});
}

std::string_view category_of(std::string_view kernel) {
  std::string name;
  for (const char c : kernel) name += lower(c);
  std::string_view category = "Others";
  int best = 0;
  if (is_collective_name(kernel)) {
    category = "Communication";
    best = kCommunication;
  }
  for (const Row& row : kRows) {
    if (row.priority <= best || name.find(row.word) == std::string::npos) continue;
    best = row.priority;
    category = row.category;
  }
  return category;
}

}  // namespace hyperloom::trace
