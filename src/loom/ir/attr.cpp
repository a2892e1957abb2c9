#include "loom/ir/attr.h"

#include <algorithm>
#include <array>

namespace loom {
namespace {

enum class PredicateDomain { Integer, Float };

constexpr std::array kPredicates = {
#define LOOM_PREDICATE(name, text, arguments, domain) \
  PredicateInfo{text, arguments, PredicateDomain::domain == PredicateDomain::Float},
#include "loom/ir/predicates.def"
};

constexpr uint32_t kFree = AttrId::kNone;

uint64_t hash_predicate(uint64_t hash, const Predicate& predicate) {
  hash = hash_combine(hash, static_cast<uint64_t>(predicate.kind));
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    hash = hash_combine(hash, predicate.args[i].value.index());
    hash = hash_combine(hash, static_cast<uint64_t>(predicate.args[i].literal));
  }
  return hash;
}

// Copies a payload into the store and returns the stable span.
template <class T>
std::span<const T> keep(std::vector<std::vector<T>>& storage, std::span<const T> payload) {
  if (payload.empty()) return {};
  storage.emplace_back(payload.begin(), payload.end());
  return storage.back();
}

}  // namespace

const PredicateInfo& predicate_info(PredicateKind kind) {
  return kPredicates[static_cast<size_t>(kind)];
}

std::optional<PredicateKind> predicate_from_name(std::string_view text) {
  for (size_t i = 0; i < kPredicates.size(); ++i) {
    if (kPredicates[i].text == text) return static_cast<PredicateKind>(i);
  }
  return std::nullopt;
}

AttrStore::AttrStore() : table_(64, kFree) {}

uint64_t AttrStore::hash_of(const Attr& attr) {
  uint64_t hash = hash_combine(static_cast<uint64_t>(attr.kind), attr.bits);
  for (int64_t value : attr.ints) hash = hash_combine(hash, static_cast<uint64_t>(value));
  for (const DictEntry& entry : attr.entries) {
    hash = hash_combine(hash_combine(hash, entry.key.index()), entry.value.index());
  }
  for (const Predicate& predicate : attr.predicates) hash = hash_predicate(hash, predicate);
  return hash;
}

bool AttrStore::equal(const Attr& a, const Attr& b) {
  return a.kind == b.kind && a.bits == b.bits && std::ranges::equal(a.ints, b.ints) &&
         std::ranges::equal(a.entries, b.entries) && std::ranges::equal(a.predicates, b.predicates);
}

AttrId AttrStore::intern(const Attr& attr) {
  const uint64_t hash = hash_of(attr);
  const size_t mask = table_.size() - 1;
  size_t slot = hash & mask;
  for (; table_[slot] != kFree; slot = (slot + 1) & mask) {
    if (hashes_[table_[slot]] == hash && equal(attrs_[table_[slot]], attr)) {
      return AttrId(table_[slot]);
    }
  }
  const auto index = static_cast<uint32_t>(attrs_.size());
  Attr stored = attr;
  stored.ints = keep(ints_, attr.ints);
  stored.entries = keep(entries_, attr.entries);
  stored.predicates = keep(predicates_, attr.predicates);
  attrs_.push_back(stored);
  hashes_.push_back(hash);
  table_[slot] = index;
  if (attrs_.size() * 2 > table_.size()) grow();
  return AttrId(index);
}

void AttrStore::grow() {
  std::vector<uint32_t> larger(table_.size() * 2, kFree);
  const size_t mask = larger.size() - 1;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    size_t slot = hashes_[i] & mask;
    while (larger[slot] != kFree) slot = (slot + 1) & mask;
    larger[slot] = static_cast<uint32_t>(i);
  }
  table_ = std::move(larger);
}

}  // namespace loom
