#include "loom/pass/specialize.h"

#include <algorithm>

#include "loom/dialect/numeric.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/link/linker.h"
#include "loom/link/literal.h"

namespace loom {
namespace {

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

bool fail(Diagnostics& diagnostics, std::string_view root, Location at, std::string detail,
          std::string repair) {
  diagnostics.emit(
      Diag::LinkSpecialize, at,
      {{"root", std::string(root)}, {"detail", std::move(detail)}, {"repair", std::move(repair)}});
  return false;
}

}  // namespace

bool Linker::specialize() {
  bool ok = true;
  for (const std::string& request : options_.specialize) ok &= specialize_one(request);
  return ok;
}

bool Linker::specialize_one(std::string_view request) {
  const size_t colon = request.find(':');
  const size_t equals = request.find('=', colon == std::string_view::npos ? 0 : colon);
  std::string_view root = request.substr(0, std::min(colon, equals));
  if (root.starts_with('@')) root.remove_prefix(1);
  if (colon == std::string_view::npos || equals == std::string_view::npos) {
    return fail(diagnostics_, root, Location(), "expected @root:name=value", "");
  }
  std::string_view name = request.substr(colon + 1, equals - colon - 1);
  if (name.starts_with('%')) name.remove_prefix(1);
  const std::string_view value_text = request.substr(equals + 1);
  if (std::ranges::find(root_names_, root) == root_names_.end()) {
    std::vector<std::string> known;
    known.reserve(root_names_.size());
    for (const std::string& item : root_names_) known.push_back("@" + item);
    return fail(diagnostics_, root, Location(), "it is not a root of this link",
                known.empty() ? "" : "roots are " + joined(known));
  }
  const OpId op = result_.symbol(root);
  const Location at = result_.location(op);
  if (result_.op(op).kind != OpKind::CommandProgramDef) {
    return fail(diagnostics_, root, at, "it is not a command program with a body here", "");
  }
  const auto args =
      result_.arg_group(result_.op_region(op, region_slot(OpKind::CommandProgramDef, "body")), 0);
  std::vector<std::string> known;
  ValueId found;
  for (ValueId arg : args) {
    known.push_back(value_name_text(result_, arg));
    if (result_.name_of(arg) == name) found = arg;
  }
  if (!found.valid()) {
    return fail(diagnostics_, root, at, "it has no specialization '%" + std::string(name) + "'",
                known.empty() ? "it has none" : "its specializations are " + joined(known));
  }
  const TypeId type = result_.type_of(found);
  const ScalarKind kind = result_.types[type].element;
  const auto literal = result_.types.is_scalar(type) && !is_float(kind)
                           ? parse_literal(value_text, kind)
                           : std::nullopt;
  if (!literal) {
    return fail(diagnostics_, root, at,
                "'" + std::string(value_text) + "' is not a value of type " +
                    type_text(result_, type) + " that a predicate can state",
                "");
  }
  PassContext context(result_, diagnostics_);
  return bind_value(context, op, found, literal->value());
}

}  // namespace loom
