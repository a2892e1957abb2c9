#include "loom/link/config_values.h"

#include <cmath>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/numeric.h"
#include "loom/dialect/op_info.h"
#include "loom/facts/int_facts.h"
#include "loom/ir/clone.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/link/literal.h"
#include "loom/text/parser.h"

namespace loom {
namespace {

constexpr unsigned kKeySlot = attr_slot(OpKind::ConfigGet, "key");
constexpr unsigned kDeclaredValue = region_slot(OpKind::ConfigDecl, "value");
constexpr unsigned kValueSlot = attr_slot(OpKind::ConfigDef, "value");
static_assert(kKeySlot == attr_slot(OpKind::IndexConstant, "value") &&
                  kKeySlot == attr_slot(OpKind::ScalarConstant, "value"),
              "a config.get becomes a constant in place");

std::string literal_text(const Attr& literal) {
  switch (literal.kind) {
    case AttrKind::Bool:
      return literal.bits != 0 ? "true" : "false";
    case AttrKind::Float:
      return float_text(literal.number());
    default:
      return std::to_string(literal.value());
  }
}

// Whether a predicate about one value holds for the literal; arguments that are values are the
// key itself.
bool predicate_holds(const Predicate& predicate, const Attr& literal) {
  if (literal.kind == AttrKind::Encoding) return true;  // no predicate speaks of encodings
  if (literal.kind == AttrKind::Float) {
    const double value = literal.number();
    switch (predicate.kind) {
      case PredicateKind::NotNan:
        return !std::isnan(value);
      case PredicateKind::NotInf:
        return !std::isinf(value);
      case PredicateKind::Finite:
        return std::isfinite(value);
      default:
        return true;
    }
  }
  IntFacts args[3];
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    args[i] = IntFacts::exactly(predicate.args[i].is_value() ? literal.value()
                                                             : predicate.args[i].literal);
  }
  return holds(predicate.kind, args).value_or(true);
}

// A definition of another type than the key is read with binds nothing: the reference stays, and
// resolving it reports the contract.
bool is_of_another_type(std::string_view stated, const Module& module, TypeId type) {
  return !stated.empty() && stated != type_text(module, type);
}

// The encoding that a text spells out, in `module`; invalid when it is none.
AttrId read_encoding(Module& module, std::string_view text) {
  SourceFiles files;
  Diagnostics diagnostics;
  const FileId file =
      files.add_text("value", "config.def @key = " + std::string(text) + " : encoding");
  const auto read = parse_text(files, file, diagnostics);
  if (!read || read->op_count() != 1) return {};
  const OpId op = read->region(read->body()).first;
  if (!op.valid() || read->op(op).kind != OpKind::ConfigDef) return {};
  const AttrId value = read->attr_ids(op)[kValueSlot];
  if (read->attrs[value].kind != AttrKind::Encoding) return {};
  return Cloner(*read, module).map(value);
}

// Turns a `config.get` into an `encoding.define` in place: its result keeps its uses.
void become_encoding(Module& module, OpId get, AttrId spec) {
  constexpr uint32_t kNoParameters[] = {0};
  std::vector<AttrId> attrs(op_info(OpKind::EncodingDefine).attrs.size());
  attrs[attr_slot(OpKind::EncodingDefine, "spec")] = spec;
  const OpId model =
      module.create({.kind = OpKind::EncodingDefine, .groups = kNoParameters, .attrs = attrs});
  Op& op = module.op(get);
  const Op& shape = module.op(model);
  op.kind = shape.kind;
  op.attr_begin = shape.attr_begin;
  op.attr_count = shape.attr_count;
  op.group_begin = shape.group_begin;
  op.group_count = shape.group_count;
}

}  // namespace

ConfigValues::ConfigValues(std::span<const LinkInput> inputs, const ConfigBindings& bindings,
                           Diagnostics& diagnostics)
    : bindings_(bindings), diagnostics_(diagnostics) {
  for (const LinkInput& input : inputs) {
    const Module& module = input.module;
    for_each_op(module, module.body(), [&](OpId op) {
      const OpKind kind = module.op(op).kind;
      if (kind == OpKind::ConfigDef) {
        definitions_.try_emplace(symbol_text(module, op), Definition{&module, op});
      } else if (kind == OpKind::ConfigDecl) {
        declarations_.try_emplace(symbol_text(module, op), Definition{&module, op});
      }
    });
  }
}

ConfigValues::Value ConfigValues::defined(const Module& module, OpId definition) {
  const AttrId value = module.attr_ids(definition)[kValueSlot];
  std::string type =
      type_text(module, module.attr(definition, attr_slot(OpKind::ConfigDef, "type")).type());
  if (module.attrs[value].kind == AttrKind::Encoding) {
    return {attr_text(module, value), "config.def", std::move(type), &module, value};
  }
  return {literal_text(module.attrs[value]), "config.def", std::move(type), nullptr, {}};
}

std::optional<ConfigValues::Value> ConfigValues::find(const Module& module,
                                                      OpId declaration) const {
  const std::string_view key = symbol_text(module, declaration);
  if (const auto* binding = bindings_.find(key); binding != nullptr) {
    return Value{binding->value, binding->origin, {}, nullptr, {}};
  }
  if (const auto found = definitions_.find(key); found != definitions_.end()) {
    return defined(*found->second.module, found->second.op);
  }
  if (module.op(declaration).kind == OpKind::ConfigDef) return defined(module, declaration);
  return std::nullopt;
}

bool ConfigValues::is_bound(const Module& module, OpId declaration) const {
  const std::string_view key = symbol_text(module, declaration);
  return bindings_.find(key) != nullptr || definitions_.contains(key) ||
         module.op(declaration).kind == OpKind::ConfigDef;
}

void ConfigValues::reject(std::string_view key, std::string detail, Location at) {
  if (!rejected_.emplace(key).second) return;
  diagnostics_.emit(Diag::ConfigValue, at,
                    {{"key", std::string(key)}, {"detail", std::move(detail)}});
}

bool ConfigValues::check(const Module& module, OpId declaration, const Attr& literal,
                         const std::string& origin) {
  for (const Predicate& predicate : where_predicates(module, declaration)) {
    if (predicate_holds(predicate, literal)) continue;
    reject(symbol_text(module, declaration),
           "the value " + literal_text(literal) + " (" + origin + ") contradicts " +
               predicate_text(module, predicate),
           module.location(declaration));
    return false;
  }
  return true;
}

bool ConfigValues::check_definition(const Module& declaring, OpId declaration,
                                    const Module& defining, OpId definition) {
  return check(declaring, declaration, defining.attr(definition, kValueSlot), "config.def");
}

std::optional<Attr> ConfigValues::literal(const Module& module, OpId declaration, TypeId type_id,
                                          const Module& typed) {
  const auto value = find(module, declaration);
  if (!value) return std::nullopt;
  const std::string_view key = symbol_text(module, declaration);
  if (is_of_another_type(value->type, typed, type_id)) return std::nullopt;
  const Type& type = typed.types[type_id];
  const auto literal = type.is_scalar() ? parse_literal(value->text, type.element) : std::nullopt;
  if (!literal) {
    reject(key,
           "'" + value->text + "' (" + value->origin + ") is not a value of type " +
               type_text(typed, type_id),
           module.location(declaration));
    return std::nullopt;
  }
  if (!check(module, declaration, *literal, value->origin)) return std::nullopt;
  // The contract of the inputs binds too when the key is declared here with a weaker one.
  if (const auto found = declarations_.find(key);
      found != declarations_.end() &&
      !check(*found->second.module, found->second.op, *literal, value->origin)) {
    return std::nullopt;
  }
  return literal;
}

// The static encoding that a key is bound to, in `result`; invalid when it has no value or not one
// of the stated role.
AttrId ConfigValues::encoding(const Module& source, OpId declaration, TypeId type, Module& result) {
  const auto value = find(source, declaration);
  if (!value || is_of_another_type(value->type, result, type)) return {};
  const AttrId spec = value->owner != nullptr ? Cloner(*value->owner, result).map(value->encoding)
                                              : read_encoding(result, value->text);
  const EncodingFamilyInfo* family = spec.valid() ? encoding_family_of(result, spec) : nullptr;
  const TypeKind kind = result.types[type].kind;
  if (family != nullptr && check_encoding(result, spec).empty() &&
      (kind == TypeKind::Encoding || role_of(kind) == family->role)) {
    return spec;
  }
  reject(symbol_text(source, declaration),
         "'" + value->text + "' (" + value->origin + ") is not a value of type " +
             type_text(result, type),
         source.location(declaration));
  return {};
}

void ConfigValues::check_bound(const Module& module) {
  for_each_op(module, module.body(), [&](OpId key) {
    const OpKind kind = module.op(key).kind;
    if (kind != OpKind::ConfigDecl && kind != OpKind::ConfigDef) return;
    if (bindings_.find(symbol_text(module, key)) == nullptr) return;
    // An encoding is read into a module, which here is thrown away.
    Module scratch(module.files());
    const OpId copy = Cloner(module, scratch).clone(key);
    const TypeId type =
        kind == OpKind::ConfigDef
            ? scratch.attr(copy, attr_slot(OpKind::ConfigDef, "type")).type()
            : scratch.type_of(scratch.args(scratch.op_region(copy, kDeclaredValue))[0]);
    if (is_encoding_type(scratch.types[type].kind)) {
      (void)encoding(module, key, type, scratch);
    } else {
      (void)literal(module, key, type, scratch);
    }
  });
}

bool ConfigValues::bind(const Module& source, Module& result, OpId copy) {
  bool bound = false;
  for_each_nested(result, copy, [&](OpId get) {
    if (result.op(get).kind != OpKind::ConfigGet) return;
    const OpId declaration = source.symbol(symbol_ref(result, get, kKeySlot));
    if (!declaration.valid()) return;
    const TypeId type = result.type_of(result.result(get));
    if (is_encoding_type(result.types[type].kind)) {
      const AttrId spec = encoding(source, declaration, type, result);
      if (!spec.valid()) return;
      become_encoding(result, get, spec);
      bound = true;
      return;
    }
    const auto value = literal(source, declaration, type, result);
    if (!value) return;
    const bool address = result.types.is_scalar(type) && is_address(result.types[type].element);
    result.op(get).kind = address ? OpKind::IndexConstant : OpKind::ScalarConstant;
    result.set_attr(get, kKeySlot, result.attrs.intern(*value));
    bound = true;
  });
  return bound;
}

}  // namespace loom
