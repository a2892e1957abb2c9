#include "loom/command/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/pass/constants.h"

namespace loom {
namespace {

constexpr unsigned kPattern = attr_slot(OpKind::CommandParameter, "pattern");
constexpr unsigned kStaticKey = attr_slot(OpKind::CommandParameter, "static_key");
constexpr unsigned kKeyGroup = operand_slot(OpKind::CommandParameter, "key");
constexpr unsigned kRootGroup = operand_slot(OpKind::CommandParameter, "root");

// Operations whose result names the storage of their first operand.
bool passes_storage(OpKind kind) {
  switch (kind) {
    case OpKind::BufferView:
    case OpKind::BufferAssumeNoalias:
    case OpKind::BufferAssumeAlignment:
    case OpKind::BufferAssumeMemorySpace:
    case OpKind::ViewSubview:
    case OpKind::ViewRefine:
      return true;
    default:
      return false;
  }
}

// The operand whose storage a result names; list operations pair results with operands.
ValueId storage_source(const Module& module, ValueId value) {
  const OpId op = module.defining_op(value);
  const OpKind kind = module.op(op).kind;
  const bool paired = kind == OpKind::BufferAssumeNoalias || kind == OpKind::BufferAssumeAlignment;
  return module.operand(op, paired ? module.value(value).index : 0);
}

uint64_t required_alignment(const Module& module, const Type& view) {
  if (view.align != 0) return view.align;
  const ElementLayout layout = element_layout(module, view);
  return layout.kind == ElementLayout::Record ? layout.record.align : scalar_bytes(view.element);
}

}  // namespace

StorageResolver::StorageResolver(const Module& module, OpId root, PreparedProgram& program,
                                 Diagnostics& diagnostics)
    : module_(module),
      root_(root),
      body_(module.op_region(root, 0)),
      program_(program),
      diagnostics_(diagnostics),
      memo_(module.value_count()) {}

bool StorageResolver::binding_of(ValueId value, uint32_t& ordinal) const {
  while (true) {
    const OpId op = module_.defining_op(value);
    if (!op.valid()) break;
    if (!passes_storage(module_.op(op).kind)) return false;
    value = storage_source(module_, value);
  }
  const Value& v = module_.value(value);
  const uint32_t split = module_.region(body_).arg_split;
  if (v.kind != ValueKind::Argument || v.owner != body_.index() || v.index < split) return false;
  ordinal = v.index - split;
  return true;
}

bool StorageResolver::classify() {
  const auto bindings = module_.arg_group(body_, 1);
  std::vector<OpId> parameter_use(bindings.size());
  std::vector<OpId> buffer_use(bindings.size());
  for_each_nested(module_, root_, [&](OpId id) {
    const OpKind kind = module_.op(id).kind;
    uint32_t ordinal = 0;
    if (kind == OpKind::CommandParameter) {
      const ValueId root = operand_group(module_, id, kRootGroup)[0];
      if (binding_of(root, ordinal)) parameter_use[ordinal] = id;
      return;
    }
    if (kind != OpKind::KernelDispatch) return;
    for (ValueId operand : module_.operands(id)) {
      if (binding_of(operand, ordinal)) buffer_use[ordinal] = id;
    }
  });
  binding_row_.assign(bindings.size(), -1);
  bool ok = true;
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    const std::string name(module_.name_of(bindings[i]));
    program_.roots.push_back(name);
    names_.insert(name);
    if (!parameter_use[i].valid()) {
      binding_row_[i] = static_cast<int32_t>(program_.bindings.size());
      program_.bindings.push_back({i, name});
    } else if (buffer_use[i].valid()) {
      diagnostics_
          .emit(Diag::CommandParameterRoot, module_.location(buffer_use[i]),
                {{"name", fmt::format("%{}", name)}})
          .notes.push_back(
              {module_.location(parameter_use[i]), "parameters are taken from it here"});
      ok = false;
    }
  }
  return ok;
}

std::optional<BufferRef> StorageResolver::resolve(ValueId value, OpId use) {
  if (memo_[value.index()]) return memo_[value.index()];
  // Down to the origin, then back up applying each window.
  std::vector<ValueId>& chain = chain_;
  chain.clear();
  std::optional<BufferRef> ref;
  for (ValueId at = value; !ref;) {
    if (memo_[at.index()]) {
      ref = memo_[at.index()];
      break;
    }
    const OpId op = module_.defining_op(at);
    if (!op.valid()) {
      uint32_t ordinal = 0;
      const bool bound = binding_of(at, ordinal);
      LOOM_CHECK(bound && binding_row_[ordinal] >= 0,
                 "buffer argument is not a rebindable binding");
      ref = BufferRef{StorageClass::Rebindable, static_cast<uint32_t>(binding_row_[ordinal])};
      memo_[at.index()] = ref;
      break;
    }
    const OpKind kind = module_.op(op).kind;
    if (kind == OpKind::CommandParameter) {
      ref = resolve_parameter(op);
      if (!ref) return std::nullopt;
      memo_[at.index()] = ref;
      break;
    }
    if (kind == OpKind::BufferAlloca) {
      ref = resolve_transient(op);
      if (!ref) return std::nullopt;
      memo_[at.index()] = ref;
      break;
    }
    if (!passes_storage(kind)) {
      diagnostics_.emit(
          Diag::CommandTopology, module_.location(op),
          {{"part", "choice"},
           {"op", std::string(op_info(kind).name)},
           {"repair", module_.op(op).operand_count > 0 ? closing_repair(module_.operand(op, 0))
                                                       : std::string()}});
      return std::nullopt;
    }
    chain.push_back(at);
    at = storage_source(module_, at);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    ref = apply(module_.defining_op(chain[i]), *ref, use);
    if (!ref) return std::nullopt;
    memo_[chain[i].index()] = ref;
  }
  return ref;
}

std::optional<BufferRef> StorageResolver::resolve_count(ValueId view, OpId use,
                                                        std::string_view kernel) {
  count_kernel_ = kernel;
  std::optional<BufferRef> ref = resolve(view, use);
  count_kernel_ = {};
  if (!ref) return std::nullopt;
  if (ref->offset % kCountAlignment != 0) {
    diagnostics_.emit(Diag::CommandCountOffset, module_.location(use),
                      {{"kernel", std::string(kernel)},
                       {"repair", "its offset is " + std::to_string(ref->offset)}});
    return std::nullopt;
  }
  ref->length = kCountBytes;
  return ref;
}

std::optional<BufferRef> StorageResolver::apply(OpId op, BufferRef ref, OpId use) {
  const OpKind kind = module_.op(op).kind;
  if (kind == OpKind::ViewRefine) {
    if (const auto bytes = exact_bytes(module_.type_of(module_.result(op)))) ref.length = *bytes;
    return fit_transient(op, ref) ? std::optional(ref) : std::nullopt;
  }
  if (kind != OpKind::BufferView && kind != OpKind::ViewSubview) return ref;
  std::optional<uint64_t> offset;
  if (kind == OpKind::BufferView) {
    if (const auto exact = exact_int(module_, module_.operand(op, 1)); exact && *exact >= 0) {
      offset = static_cast<uint64_t>(*exact);
    }
  } else {
    offset = subview_offset(op);
  }
  if (!offset || __builtin_add_overflow(ref.offset, *offset, &ref.offset)) {
    report_range(op, use);
    return std::nullopt;
  }
  ref.length = exact_bytes(module_.type_of(module_.result(op))).value_or(BufferRef::kWholeBuffer);
  return fit_transient(op, ref) ? std::optional(ref) : std::nullopt;
}

void StorageResolver::report_range(OpId op, OpId use) {
  const std::string repair =
      module_.op(op).operand_count > 1 ? closing_repair(module_.operand(op, 1)) : std::string();
  if (!count_kernel_.empty()) {
    diagnostics_
        .emit(Diag::CommandCountOffset, module_.location(use),
              {{"kernel", std::string(count_kernel_)}, {"repair", repair}})
        .notes.push_back({module_.location(op), "the storage is named here"});
    return;
  }
  diagnostics_
      .emit(Diag::CommandViewRange, module_.location(op),
            {{"op", std::string(op_info(module_.op(op).kind).name)}, {"repair", repair}})
      .notes.push_back({module_.location(use), "passed to a kernel here"});
}

// Holds a window to its transient, and the transient to the alignment of the window.
bool StorageResolver::fit_transient(OpId op, BufferRef& ref) {
  if (ref.storage != StorageClass::Transient) return true;
  TransientRow& row = program_.transients[ref.index];
  const bool inside = ref.offset <= row.length;
  if (inside && ref.length == BufferRef::kWholeBuffer) ref.length = row.length - ref.offset;
  if (!inside || ref.length > row.length - ref.offset) {
    uint64_t needed = 0;
    const uint64_t length = ref.length == BufferRef::kWholeBuffer ? 0 : ref.length;
    if (__builtin_add_overflow(ref.offset, length, &needed)) needed = ref.length;
    diagnostics_.emit(Diag::CommandTransientRange, module_.location(op),
                      {{"name", fmt::format("%{}", row.name)},
                       {"needed", std::to_string(needed)},
                       {"size", std::to_string(row.length)}});
    return false;
  }
  const uint64_t alignment =
      required_alignment(module_, module_.types[module_.type_of(module_.result(op))]);
  if (ref.offset % alignment == 0) row.alignment = std::max(row.alignment, alignment);
  return true;
}

std::string StorageResolver::unique_name(std::string_view name) {
  std::string unique(name);
  for (uint32_t number = 2; !names_.insert(unique).second; ++number) {
    unique = fmt::format("{}_{}", name, number);
  }
  return unique;
}

// Every execution of the operation is storage of its own, and loops are expanded, so each operation
// is one transient.
std::optional<BufferRef> StorageResolver::resolve_transient(OpId op) {
  const ValueId bytes = module_.operand(op, operand_slot(OpKind::BufferAlloca, "bytes"));
  const auto alignment =
      static_cast<uint64_t>(module_.attr(op, attr_slot(OpKind::BufferAlloca, "align")).value());
  const std::optional<int64_t> exact = exact_int(module_, bytes);
  std::string repair;
  if (!exact) {
    repair = closing_repair(bytes);
  } else if (*exact < 0) {
    repair = fmt::format("it is {}", *exact);
  } else if (__builtin_add_overflow(transient_bytes_, static_cast<uint64_t>(*exact),
                                    &transient_bytes_) ||
             __builtin_add_overflow(transient_bytes_, alignment, &transient_bytes_) ||
             transient_bytes_ > uint64_t{1} << 62) {
    repair = "all transients together exceed the address space";
  } else {
    const auto length = static_cast<uint64_t>(*exact);
    const auto row = static_cast<uint32_t>(program_.transients.size());
    program_.transients.push_back(
        {unique_name(module_.name_of(module_.result(op))), 0, length, alignment});
    return BufferRef{StorageClass::Transient, row, 0, length};
  }
  diagnostics_.emit(Diag::CommandTransientSize, module_.location(op), {{"repair", repair}});
  return std::nullopt;
}

// A kernel argument is dense, so only windows that are contiguous in their source can be passed:
// below the first axis with an extent above one, every axis must be taken whole.
std::optional<uint64_t> StorageResolver::subview_offset(OpId op) const {
  const auto source = exact_extents(module_.type_of(module_.operand(op, 0)));
  const auto window = exact_extents(module_.type_of(module_.result(op)));
  if (!source || !window || source->size() != window->size()) return std::nullopt;
  const auto statics = module_.attr(op, attr_slot(OpKind::ViewSubview, "static_index")).ints;
  const auto dynamics = operand_group(module_, op, operand_slot(OpKind::ViewSubview, "index"));
  if (statics.size() != source->size()) return std::nullopt;
  size_t next = 0;
  uint64_t offset = 0;
  bool inside = false;
  for (size_t axis = 0; axis < source->size(); ++axis) {
    int64_t index = statics[axis];
    if (index == kDynamicIndex) {
      const auto exact = exact_int(module_, dynamics[next++]);
      if (!exact) return std::nullopt;
      index = *exact;
    }
    const int64_t extent = (*source)[axis];
    if (index < 0 || (*window)[axis] > extent || index > extent - (*window)[axis]) {
      return std::nullopt;
    }
    if (inside && (*window)[axis] != extent) return std::nullopt;
    inside |= (*window)[axis] != 1;
    if (__builtin_mul_overflow(offset, static_cast<uint64_t>(extent), &offset) ||
        __builtin_add_overflow(offset, static_cast<uint64_t>(index), &offset)) {
      return std::nullopt;
    }
  }
  const uint64_t element = scalar_bytes(module_.types[module_.type_of(module_.result(op))].element);
  return __builtin_mul_overflow(offset, element, &offset) ? std::nullopt : std::optional(offset);
}

std::optional<std::vector<int64_t>> StorageResolver::exact_extents(TypeId type_id) const {
  const Type& type = module_.types[type_id];
  if (type.encoding.valid() || type.encoding_value.valid()) return std::nullopt;
  std::vector<int64_t> extents;
  for (Dim dim : type.dims) {
    if (!dim.is_dynamic()) {
      extents.push_back(dim.extent());
      continue;
    }
    const auto exact = exact_int(module_, dim.value());
    if (!exact || *exact < 0) return std::nullopt;
    extents.push_back(*exact);
  }
  return extents;
}

std::optional<uint64_t> StorageResolver::exact_bytes(TypeId type_id) const {
  const Type& type = module_.types[type_id];
  if (type.encoding.valid() || type.encoding_value.valid()) {
    return footprint_bytes(module_, type);
  }
  uint64_t bytes = scalar_bytes(type.element);
  for (Dim dim : type.dims) {
    const auto extent = dim.is_dynamic() ? exact_int(module_, dim.value()) : dim.extent();
    if (!extent || *extent < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(*extent), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

// Writes the closed key to `key_text_`.
bool StorageResolver::append_key(OpId op) {
  const std::string_view pattern = module_.strings.text(module_.attr(op, kPattern).string());
  const auto dynamics = operand_group(module_, op, kKeyGroup);
  std::span<const int64_t> statics;
  if (module_.has_attr(op, kStaticKey)) statics = module_.attr(op, kStaticKey).ints;
  std::string& key = key_text_;
  key.clear();
  size_t next_static = 0;
  size_t next_dynamic = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      key.push_back(pattern[i]);
      continue;
    }
    ++i;  // The verifier holds braces to complete pairs.
    std::optional<int64_t> exact;
    ValueId value;
    const size_t number = next_static;
    if (next_static < statics.size() && statics[next_static] != kDynamicIndex) {
      exact = statics[next_static];
    } else {
      value = dynamics[next_dynamic++];
      exact = exact_int(module_, value);
    }
    ++next_static;
    if (!exact || *exact < 0) {
      diagnostics_.emit(
          Diag::CommandKey, module_.location(op),
          {{"pattern", std::string(pattern)},
           {"index", fmt::format("{}", number)},
           {"state", exact ? fmt::format("the negative number {}", *exact) : "not exact"},
           {"repair", exact ? "pass a non-negative index" : closing_repair(value)}});
      return false;
    }
    append_integer(key, *exact);
  }
  return true;
}

std::optional<BufferRef> StorageResolver::resolve_parameter(OpId op) {
  const TypeId type_id = module_.type_of(module_.result(op));
  const std::optional<uint64_t> bytes = exact_bytes(type_id);
  if (!bytes) {
    std::string repair = "state every extent of the view as a number";
    for (Dim dim : module_.types[type_id].dims) {
      if (!dim.is_dynamic()) continue;
      const std::string closing = closing_repair(dim.value());
      if (!closing.empty()) repair = closing;
    }
    diagnostics_.emit(Diag::CommandFootprint, module_.location(op),
                      {{"type", type_text(module_, type_id)}, {"repair", repair}});
    return std::nullopt;
  }
  if (!append_key(op)) return std::nullopt;
  uint32_t ordinal = 0;
  const bool bound = binding_of(operand_group(module_, op, kRootGroup)[0], ordinal);
  LOOM_CHECK(bound, "a parameter root is a launch binding of the program");
  const uint64_t alignment = required_alignment(module_, module_.types[type_id]);
  const size_t key_size = key_text_.size();
  key_text_.append(reinterpret_cast<const char*>(&ordinal), sizeof ordinal);
  const StringId id = keys_.intern(key_text_);
  key_text_.resize(key_size);
  if (id.index() == row_of_key_.size()) {
    row_of_key_.push_back(static_cast<uint32_t>(program_.parameters.size()));
    program_.parameters.push_back({ordinal, key_text_, *bytes, alignment});
    return BufferRef{StorageClass::Fixed, row_of_key_.back(), 0, *bytes};
  }
  ParameterRow& row = program_.parameters[row_of_key_[id.index()]];
  if (row.length != *bytes) {
    diagnostics_.emit(Diag::CommandKeyLengths, module_.location(op),
                      {{"key", key_text_},
                       {"length_a", fmt::format("{}", row.length)},
                       {"length_b", fmt::format("{}", *bytes)}});
    return std::nullopt;
  }
  row.alignment = std::max(row.alignment, alignment);
  return BufferRef{StorageClass::Fixed, row_of_key_[id.index()], 0, *bytes};
}

std::string StorageResolver::closing_repair(ValueId value) const {
  std::vector<ValueId> work{value};
  std::vector<bool> seen(module_.value_count());
  const uint32_t split = module_.region(body_).arg_split;
  while (!work.empty()) {
    const ValueId at = work.back();
    work.pop_back();
    if (!at.valid() || seen[at.index()]) continue;
    seen[at.index()] = true;
    const Value& v = module_.value(at);
    if (v.kind == ValueKind::Argument) {
      const RegionId owner(v.owner);
      if (owner == body_ && v.index < split) {
        return fmt::format("fix %{0} with --specialize=@{1}:{0}=value", module_.name_of(at),
                           symbol_text(module_, root_));
      }
      // An induction or carried value depends on the operands of its loop.
      if (const OpId parent = module_.region(owner).parent; parent.valid() && owner != body_) {
        const auto operands = module_.operands(parent);
        work.insert(work.end(), operands.begin(), operands.end());
      }
      continue;
    }
    if (const OpId op = module_.defining_op(at); op.valid()) {
      const auto operands = module_.operands(op);
      work.insert(work.end(), operands.rbegin(), operands.rend());
      if (module_.op(op).kind == OpKind::ConfigGet) {
        const std::string_view key = symbol_ref(module_, op, attr_slot(OpKind::ConfigGet, "key"));
        return fmt::format("bind it with --config={}=VALUE", key);
      }
    }
  }
  return {};
}

}  // namespace loom
