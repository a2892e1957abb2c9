#include "loom/api/rewrites.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "loom/api/inspect.h"
#include "loom/api/state.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/ir/walk.h"
#include "loom/link/load.h"
#include "loom/pass/coarsen.h"
#include "loom/pass/interchange.h"
#include "loom/pass/licm.h"
#include "loom/pass/partial_unroll.h"
#include "loom/pass/split_reduction.h"
#include "loom/pass/unroll.h"
#include "loom/text/printer.h"

namespace loom::api {
namespace {

const std::vector<std::string> kFactors = {"2", "4", "8"};

// A copy of a module that may be changed, with its text where it has one.
struct Copy {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<loom::Module> module;
  std::string text;
  OpId kernel;
};

OpId kernel_of(const loom::Module& module, const std::string& name) {
  const OpId op = module.symbol(name);
  if (!op.valid() || module.op(op).kind != OpKind::KernelDef) return {};
  const RegionId body = module.op_region(op, region_slot(OpKind::KernelDef, "body"));
  return module.region(body).deferred ? OpId() : op;
}

void open_copy(const loom::Module& module, const std::string& kernel, Copy& copy) {
  const OpId found = kernel_of(module, kernel);
  if (!found.valid()) return;
  const Location at = module.location(found);
  std::string path = "module";
  if (at.valid() && module.files().file(at.file).has_text) {
    path = module.files().file(at.file).path;
    copy.text = module.files().file(at.file).text;
  } else {
    copy.text = print_text(module);
  }
  copy.module = load_module(copy.files, copy.text, path, copy.diagnostics);
  if (copy.module) copy.kernel = kernel_of(*copy.module, kernel);
}

std::vector<OpId> loops_of(const loom::Module& module, OpId kernel) {
  std::vector<OpId> loops;
  for_each_nested(module, kernel, [&](OpId op) {
    if (module.op(op).kind == OpKind::ScfFor) loops.push_back(op);
  });
  return loops;
}

bool has_clauses(const loom::Module& module, OpId loop) {
  return module.has_attr(loop, attr_slot(OpKind::ScfFor, "unroll")) ||
         module.has_attr(loop, attr_slot(OpKind::ScfFor, "schedule")) ||
         !operand_group(module, loop, operand_slot(OpKind::ScfFor, "factor")).empty() ||
         !operand_group(module, loop, operand_slot(OpKind::ScfFor, "depth")).empty();
}

// A split runs the unroll pass, which would expand what other loops ask for.
bool nothing_to_unroll(const loom::Module& module, const std::vector<OpId>& loops) {
  return std::ranges::none_of(loops, [&](OpId loop) { return has_clauses(module, loop); });
}

bool hoist(Copy& copy) {
  const std::string before = print_op(*copy.module, copy.kernel);
  PassContext context(*copy.module, copy.diagnostics);
  return licm(context, copy.kernel) && print_op(*copy.module, copy.kernel) != before;
}

std::optional<uint32_t> factor_of(const std::string& value) {
  if (std::ranges::find(kFactors, value) == kFactors.end()) return std::nullopt;
  return static_cast<uint32_t>(value[0] - '0');
}

bool change_loop(Copy& copy, const std::string& name, OpId loop, const std::string& value) {
  loom::Module& module = *copy.module;
  if (name == "interchange") {
    if (value != "yes" || !can_interchange(module, copy.kernel, loop)) return false;
    interchange(module, loop);
    return true;
  }
  const auto factor = factor_of(value);
  if (!factor || has_clauses(module, loop)) return false;
  if (name == "unroll") {
    set_unroll_factor(module, loop, *factor);
    return true;
  }
  if (name != "split_accumulators" || !can_split_reduction(module, loop) ||
      !nothing_to_unroll(module, loops_of(module, copy.kernel))) {
    return false;
  }
  PassContext context(module, copy.diagnostics);
  return split_reduction(context, copy.kernel, loop, *factor);
}

bool change(Copy& copy, const std::string& name, const std::string& site,
            const std::string& value) {
  if (name == "hoist") return value == "yes" && site.empty() && hoist(copy);
  if (name == "coarsen") {
    const auto factor = factor_of(value);
    if (!factor || site != "x" || !can_coarsen(*copy.module, copy.kernel, *factor)) return false;
    coarsen(*copy.module, copy.kernel, *factor);
    return true;
  }
  constexpr std::string_view kLoop = "loop ";
  size_t number = 0;
  if (!site.starts_with(kLoop)) return false;
  const auto [end, error] =
      std::from_chars(site.data() + kLoop.size(), site.data() + site.size(), number);
  if (error != std::errc() || end != site.data() + site.size()) return false;
  const std::vector<OpId> loops = loops_of(*copy.module, copy.kernel);
  return number >= 1 && number <= loops.size() && change_loop(copy, name, loops[number - 1], value);
}

// Puts the changed kernel where the old one stood.
std::string spliced(Copy& copy, const SourcePlace& place) {
  // Comments in front of the kernel are not among its lines.
  copy.module->op_trivia.erase(copy.kernel.index());
  std::string result;
  size_t at = 0;
  for (uint32_t line = 1; at < copy.text.size(); ++line) {
    const size_t end = std::min(copy.text.find('\n', at), copy.text.size() - 1) + 1;
    if (line == place.line) result += print_op(*copy.module, copy.kernel);
    if (line < place.line || line > place.end_line) result += copy.text.substr(at, end - at);
    at = end;
  }
  return result;
}

// Whether another symbol stands on one of the kernel's lines.
bool shares_lines(const loom::Module& module, OpId kernel, const SourcePlace& place) {
  bool shares = module.location(kernel).column != 1;
  for_each_op(module, module.body(), [&](OpId op) {
    const Location at = module.location(op);
    shares = shares ||
             (op != kernel && at.valid() && at.line >= place.line && at.line <= place.end_line);
  });
  return shares;
}

std::vector<Rewrite> loop_rewrites(Copy& copy) {
  const loom::Module& module = *copy.module;
  const std::vector<OpId> loops = loops_of(module, copy.kernel);
  const bool splits = nothing_to_unroll(module, loops);
  std::vector<Rewrite> rewrites;
  for (size_t i = 0; i < loops.size(); ++i) {
    const std::string site = fmt::format("loop {}", i + 1);
    const uint32_t line = module.location(loops[i]).line;
    if (can_interchange(module, copy.kernel, loops[i])) {
      rewrites.push_back({"interchange", site, {"yes"}, line});
    }
    if (!has_clauses(module, loops[i])) rewrites.push_back({"unroll", site, kFactors, line});
    if (splits && can_split_reduction(module, loops[i])) {
      rewrites.push_back({"split_accumulators", site, kFactors, line});
    }
  }
  return rewrites;
}

}  // namespace

std::vector<Rewrite> list_rewrites(const Module& module, const std::string& kernel) {
  Copy copy;
  open_copy(module.state().module, kernel, copy);
  if (!copy.kernel.valid()) return {};
  std::vector<Rewrite> rewrites = loop_rewrites(copy);
  std::vector<std::string> factors;
  for (const std::string& factor : kFactors) {
    if (can_coarsen(*copy.module, copy.kernel, *factor_of(factor))) factors.push_back(factor);
  }
  if (!factors.empty()) rewrites.push_back({"coarsen", "x", std::move(factors)});
  if (hoist(copy)) rewrites.push_back({"hoist", "", {"yes"}});
  return rewrites;
}

std::optional<std::string> apply_rewrite(const Module& module, const std::string& kernel,
                                         const std::string& name, const std::string& site,
                                         const std::string& value, Messages& messages) {
  Copy copy;
  open_copy(module.state().module, kernel, copy);
  if (!copy.kernel.valid()) return std::nullopt;
  SourcePlace place;
  bool whole = true;
  {
    Context context;
    Messages unused(context);
    const auto read = Module::read(context, copy.text, "module", unused);
    for (SourcePlace& row : source_places(*read)) {
      if (row.symbol == kernel) place = std::move(row);
    }
    whole = place.line == 0 || shares_lines(*copy.module, copy.kernel, place);
  }
  if (!change(copy, name, site, value)) return std::nullopt;
  std::string text = whole ? print_text(*copy.module) : spliced(copy, place);
  // Read again: the words must stand for what was proven.
  SourceFiles files;
  Diagnostics diagnostics;
  if (load_module(files, text, "rewritten", diagnostics)) return text;
  for (const Diagnostic& d : diagnostics.all()) {
    messages.state().diagnostics.emit_as(d.severity, d.id, Location(), d.params);
  }
  return std::nullopt;
}

}  // namespace loom::api
