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

uint32_t AttrStore::hash_of(const Attr& attr) {
  uint64_t hash = hash_combine(static_cast<uint64_t>(attr.kind), attr.bits);
  for (int64_t value : attr.ints) hash = hash_combine(hash, static_cast<uint64_t>(value));
  for (const DictEntry& entry : attr.entries) {
    hash = hash_combine(hash_combine(hash, entry.key.index()), entry.value.index());
  }
  for (const Predicate& predicate : attr.predicates) hash = hash_predicate(hash, predicate);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

bool AttrStore::equal(const Attr& a, const Attr& b) {
  return a.kind == b.kind && a.bits == b.bits && std::ranges::equal(a.ints, b.ints) &&
         std::ranges::equal(a.entries, b.entries) && std::ranges::equal(a.predicates, b.predicates);
}

AttrId AttrStore::intern(const Attr& attr) {
  const uint32_t hash = hash_of(attr);
  const uint32_t known = table_.find(hash, [&](uint32_t row) { return equal(attrs_[row], attr); });
  if (known != InternTable::kNone) return AttrId(known);
  Attr stored = attr;
  stored.ints = keep(ints_, attr.ints);
  stored.entries = keep(entries_, attr.entries);
  stored.predicates = keep(predicates_, attr.predicates);
  attrs_.push_back(stored);
  return AttrId(table_.add(hash));
}

}  // namespace loom
