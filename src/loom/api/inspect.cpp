#include "loom/api/inspect.h"

#include <algorithm>
#include <limits>
#include <map>

#include "loom/api/state.h"
#include "loom/base/hash.h"
#include "loom/bytecode/bytecode.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/link/load.h"
#include "loom/link/rewrite.h"
#include "loom/pass/work.h"

namespace loom::api {
namespace {

void raise(std::optional<int64_t>& bound, int64_t value) {
  bound = bound ? std::max(*bound, value) : value;
}
void lower(std::optional<int64_t>& bound, int64_t value) {
  bound = bound ? std::min(*bound, value) : value;
}

// Takes up what a predicate says of the value alone.
void narrow(ConfigKey& key, const Predicate& predicate) {
  if (!predicate.args[0].is_value()) return;
  for (unsigned i = 1; i < predicate.arity(); ++i) {
    if (predicate.args[i].is_value()) return;
  }
  const int64_t bound = predicate.args[1].literal;
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  switch (predicate.kind) {
    case PredicateKind::Eq:
      raise(key.minimum, bound);
      lower(key.maximum, bound);
      break;
    case PredicateKind::Gt:
      raise(key.minimum, bound == kMost ? kMost : bound + 1);
      break;
    case PredicateKind::Ge:
    case PredicateKind::Min:
      raise(key.minimum, bound);
      break;
    case PredicateKind::Lt:
      lower(key.maximum, bound == kLeast ? kLeast : bound - 1);
      break;
    case PredicateKind::Le:
    case PredicateKind::Max:
      lower(key.maximum, bound);
      break;
    case PredicateKind::Range:
      raise(key.minimum, bound);
      lower(key.maximum, predicate.args[2].literal);
      break;
    case PredicateKind::Mul:
      if (bound > key.multiple_of) key.multiple_of = bound;
      break;
    case PredicateKind::Pow2:
      key.power_of_two = true;
      break;
    default:
      break;
  }
}

void read_key(const loom::Module& module, OpId op, ConfigKey& key) {
  const bool defines = module.op(op).kind == OpKind::ConfigDef;
  if (defines) {
    key.value = attr_text(module, module.attr_ids(op)[attr_slot(OpKind::ConfigDef, "value")]);
    key.type = type_text(module, module.attr(op, attr_slot(OpKind::ConfigDef, "type")).type());
  } else {
    const auto args = module.args(module.op_region(op, region_slot(OpKind::ConfigDecl, "value")));
    if (!args.empty()) key.type = type_text(module, module.type_of(args[0]));
    for (const Predicate& predicate : where_predicates(module, op)) {
      key.predicates.push_back(predicate_text(module, predicate));
      narrow(key, predicate);
    }
  }
  const Location at = module.location(op);
  if (at.valid() && (defines || key.file.empty())) {
    key.file = module.files().file(at.file).path;
    key.line = at.line;
  }
}

bool is_code_line(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t\r");
  return first != std::string::npos && line.compare(first, 2, "//") != 0;
}

// The last line before `limit` that is neither empty nor a comment.
uint32_t last_line(const SourceFiles& files, FileId file, uint32_t begin, uint32_t limit) {
  uint32_t line = limit - 1;
  while (line > begin && !is_code_line(files.line_text(file, line))) --line;
  return line;
}

uint32_t line_count(const std::string& text) {
  return static_cast<uint32_t>(std::ranges::count(text, '\n')) + 1;
}

}  // namespace

std::vector<ConfigKey> configuration(const Module& module) {
  const loom::Module& read = module.state().module;
  std::vector<ConfigKey> keys;
  std::map<std::string, size_t, std::less<>> places;
  for_each_op(read, read.body(), [&](OpId op) {
    const OpKind kind = read.op(op).kind;
    if (kind != OpKind::ConfigDecl && kind != OpKind::ConfigDef) return;
    const std::string name(symbol_text(read, op));
    const auto [at, fresh] = places.try_emplace(name, keys.size());
    if (fresh) {
      keys.emplace_back();
      keys.back().key = name;
    }
    read_key(read, op, keys[at->second]);
  });
  return keys;
}

std::vector<SourcePlace> source_places(const Module& module) {
  const loom::Module& read = module.state().module;
  std::vector<SourcePlace> places;
  std::vector<OpId> ops;
  for_each_op(read, read.body(), [&](OpId op) { ops.push_back(op); });
  const std::vector<SymbolSummary> summaries = summarize_symbols(read);
  size_t row = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const StringId name = symbol_name(read, ops[i]);
    if (!name.valid()) continue;
    const std::string symbol(symbol_text(read, ops[i]));
    while (row < summaries.size() && summaries[row].name != symbol) ++row;
    const Location at = read.location(ops[i]);
    if (!at.valid() || row == summaries.size()) continue;
    const SourceFiles& files = read.files();
    uint32_t limit = line_count(files.file(at.file).text) + 1;
    for (size_t next = i + 1; next < ops.size(); ++next) {
      const Location after = read.location(ops[next]);
      if (!after.valid() || after.file != at.file) continue;
      limit = after.line;
      break;
    }
    places.push_back({symbol, summaries[row].kind, files.file(at.file).path, at.line,
                      limit > at.line ? last_line(files, at.file, at.line, limit) : at.line});
  }
  return places;
}

std::vector<KernelWork> kernel_work(const LinkedModule& module) {
  // On a copy, in which more is known of the arguments.
  SourceFiles files;
  Diagnostics diagnostics;
  auto copy = load_module(files, write_bytecode(module.state().module), "linked", diagnostics);
  if (!copy) return {};
  fix_launch_arguments(*copy);
  const loom::Module& read = *copy;
  std::vector<KernelWork> rows;
  for_each_op(read, read.body(), [&](OpId op) {
    if (read.op(op).kind != OpKind::KernelDef) return;
    if (read.region(read.op_region(op, region_slot(OpKind::KernelDef, "body"))).deferred) return;
    const loom::KernelWork work = loom::kernel_work(read, op);
    rows.push_back({std::string(symbol_text(read, op)), work.f32, work.f64, work.i32, work.i64});
  });
  return rows;
}

std::string code_hash(const Executables& executables) {
  return executables.state()->code->content_hash();
}

}  // namespace loom::api
