// Buffers, views and encodings: where bytes are, before anything touches them.
#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

namespace {

bool multiply_add(int64_t a, int64_t b, int64_t& sum) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

}  // namespace

Machine::Outcome Machine::allocate(Invocation& t, OpId op) {
  const auto bytes = integer(t, op, module_.operand(op, 0));
  if (!bytes) return Outcome::Stop;
  const auto space =
      static_cast<MemorySpace>(module_.attr(op, attr_slot(BufferAlloca, "space")).value());
  const auto align =
      static_cast<uint64_t>(module_.attr(op, attr_slot(BufferAlloca, "align")).value());
  std::string name(module_.name_of(module_.result(op)));
  const auto make = [&] {
    auto root = allocate_root(name, space, align, static_cast<uint64_t>(*bytes));
    if (root == nullptr) {
      fail(op, Diag::RunOutOfMemory,
           {{"bytes", std::to_string(*bytes)}, {"what", "'%" + name + "'"}});
    } else {
      root->shared = in_program(t) || (t.group != nullptr && space == MemorySpace::Workgroup);
      root->is_transient = t.launch == nullptr && in_program(t);
      if (t.launch != nullptr) root->shared = root->is_workgroup();
    }
    return root;
  };
  std::shared_ptr<Root> root;
  if (t.group != nullptr && space == MemorySpace::Workgroup) {
    std::shared_ptr<Root>& shared = t.group->roots[{op.index(), t.allocations[op.index()]++}];
    if (shared == nullptr) shared = make();
    root = shared;
    if (root != nullptr && root->bytes.size() != static_cast<uint64_t>(*bytes)) {
      violation(op, fmt::format("it asks for {} bytes where another workitem asks for {}", *bytes,
                                root->bytes.size()));
      return Outcome::Stop;
    }
  } else {
    root = make();
  }
  if (root == nullptr) return Outcome::Stop;
  set(t, module_.result(op), BufferDatum{root, 0, root->bytes.size()});
  return Outcome::Next;
}

// Extents, strides and alignment as the type says.
bool Machine::lay_out(Invocation& t, OpId op, const Type& type, ViewDatum& made) {
  auto shape = extents(t, op, type);
  if (!shape) return false;
  made.extents = std::move(*shape);
  made.element = type.element;
  made.align = type.align != 0 ? type.align : scalar_bytes(type.element);
  ElementLayout layout;
  if (type.encoding_value.valid()) {
    const auto* found =
        std::get_if<std::shared_ptr<const EncodingDatum>>(&get(t, type.encoding_value));
    if (found == nullptr) return not_a_value(op, get(t, type.encoding_value));
    if ((*found)->strides) {
      layout.kind = ElementLayout::Strided;
      layout.strides = *(*found)->strides;
    } else if (!(*found)->dense) {
      Type fixed = type;
      fixed.encoding_value = ValueId();
      fixed.encoding = (*found)->attr;
      layout = element_layout(module_, fixed);
    }
  } else {
    layout = element_layout(module_, type);
  }
  made.strides.assign(made.extents.size(), 1);
  switch (layout.kind) {
    case ElementLayout::Dense:
      for (size_t axis = made.extents.size(); axis-- > 1;) {
        if (__builtin_mul_overflow(made.strides[axis], std::max<int64_t>(made.extents[axis], 1),
                                   &made.strides[axis - 1])) {
          return violation(op, "the extents of its type are too large");
        }
      }
      return true;
    case ElementLayout::Strided:
      if (layout.strides.size() != made.extents.size()) return unsupported(op);
      made.strides = layout.strides;
      return true;
    case ElementLayout::Record:
      made.strides.clear();
      made.record = layout.record;
      if (type.align == 0) made.align = layout.record.align;
      return true;
    case ElementLayout::Unknown:
      break;
  }
  return unsupported(op);
}

std::optional<uint64_t> footprint(const ViewDatum& view) {
  int64_t elements = 1;
  int64_t last = 0;
  for (size_t axis = 0; axis < view.extents.size(); ++axis) {
    if (view.extents[axis] == 0) return 0;
    if (__builtin_mul_overflow(elements, view.extents[axis], &elements)) return std::nullopt;
    if (view.record.bytes == 0 && !multiply_add(view.extents[axis] - 1, view.strides[axis], last)) {
      return std::nullopt;
    }
  }
  int64_t bytes = 0;
  const bool good = view.record.bytes != 0
                        ? multiply_add((elements + view.record.elements - 1) / view.record.elements,
                                       view.record.bytes, bytes)
                        : last >= 0 && multiply_add(last + 1, scalar_bytes(view.element), bytes);
  if (!good) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::shared_ptr<const ViewDatum> Machine::view_of(Invocation& t, OpId op, const BufferDatum& buffer,
                                                  int64_t offset, const Type& type) {
  auto made = std::make_shared<ViewDatum>();
  made->buffer = buffer;
  if (!lay_out(t, op, type, *made)) return nullptr;
  made->base = static_cast<int64_t>(buffer.begin);
  if (!multiply_add(offset, 1, made->base)) {
    violation(op, "its offset is out of range");
    return nullptr;
  }
  return made;
}

// Storage that a view of it exceeds is refused before anything is touched, as devices do.
bool Machine::check_binding_size(OpId op, const ViewDatum& made) {
  const Root* root = made.buffer.root.get();
  if (root == nullptr || (!root->is_binding && !root->is_transient)) return true;
  const auto bytes = footprint(made);
  if (!bytes || *bytes == 0) return true;
  const uint64_t needed = static_cast<uint64_t>(made.base) + *bytes;
  if (needed <= made.buffer.begin + made.buffer.size) return true;
  return fail(op, root->is_binding ? Diag::RunBindingSize : Diag::RunTransientSize,
              {{"name", root->name},
               {"size", std::to_string(root->bytes.size())},
               {"needed", std::to_string(needed)}});
}

Machine::Outcome Machine::make_view(Invocation& t, OpId op) {
  const Datum& offset_datum = get(t, module_.operand(op, 1));
  if (std::holds_alternative<Poison>(offset_datum)) {
    set(t, module_.result(op), Poison{});
    return Outcome::Next;
  }
  const auto root = buffer(t, op, module_.operand(op, 0));
  const auto offset = integer(t, op, module_.operand(op, 1));
  if (!root || !offset) return Outcome::Stop;
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  auto made = view_of(t, op, *root, *offset, type);
  if (made == nullptr) return Outcome::Stop;
  // What workitems compute for themselves may be guarded; what is the same for all of them is not.
  const OpId source = module_.defining_op(module_.operand(op, 1));
  bool exact = source.valid() && module_.op(source).kind == IndexConstant;
  for (Dim dim : type.dims) {
    if (!dim.is_dynamic()) continue;
    const OpId extent = module_.defining_op(dim.value());
    const Value& value = module_.value(dim.value());
    exact &= extent.valid() ? module_.op(extent).kind == IndexConstant
                            : module_.region(RegionId(value.owner)).parent == t.frames[0].symbol;
  }
  if (t.launch == nullptr || exact) {
    if (!check_binding_size(op, *made)) return Outcome::Stop;
  }
  set(t, module_.result(op), std::move(made));
  return Outcome::Next;
}

Machine::Outcome Machine::subview(Invocation& t, OpId op) {
  const auto source = view(t, op, operand_group(module_, op, operand_slot(ViewSubview, "w"))[0]);
  if (source == nullptr) return Outcome::Stop;
  const auto origin = indices(t, op, operand_group(module_, op, operand_slot(ViewSubview, "index")),
                              attr_slot(ViewSubview, "static_index"));
  if (!origin) return Outcome::Stop;
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  auto made = std::make_shared<ViewDatum>(*source);
  auto shape = extents(t, op, type);
  if (!shape) return Outcome::Stop;
  made->extents = std::move(*shape);
  if (type.align != 0) made->align = type.align;
  if (source->record.bytes != 0) {
    // Whole records of the last axis only.
    int64_t linear = 0;
    for (size_t axis = 0; axis < origin->size(); ++axis) {
      linear = linear * source->extents[axis] + (*origin)[axis];
    }
    if (linear % source->record.elements != 0) {
      unsupported(op);
      return Outcome::Stop;
    }
    made->base += linear / source->record.elements * source->record.bytes;
  }
  int64_t linear = 0;
  for (size_t axis = 0; axis < source->strides.size(); ++axis) {
    if (!multiply_add((*origin)[axis], source->strides[axis], linear)) {
      violation(op, "its origin is out of range");
      return Outcome::Stop;
    }
  }
  if (!multiply_add(linear, scalar_bytes(made->element), made->base)) {
    violation(op, "its origin is out of range");
    return Outcome::Stop;
  }
  set(t, module_.result(op), std::shared_ptr<const ViewDatum>(std::move(made)));
  return Outcome::Next;
}

Machine::Outcome Machine::refine(Invocation& t, OpId op) {
  const auto source = view(t, op, module_.operand(op, 0));
  if (source == nullptr) return Outcome::Stop;
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  auto made = std::make_shared<ViewDatum>(*source);
  auto shape = extents(t, op, type);
  if (!shape) return Outcome::Stop;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if ((*shape)[axis] == source->extents[axis] || !options_.check_promises) continue;
    fail(op, Diag::RunFalsePromise,
         {{"what", "the type of the result"},
          {"detail", fmt::format("axis {} has the extent {} and not {}", axis,
                                 source->extents[axis], (*shape)[axis])}});
    return Outcome::Stop;
  }
  made->align = type.align != 0 ? type.align : scalar_bytes(type.element);
  set(t, module_.result(op), std::shared_ptr<const ViewDatum>(std::move(made)));
  return Outcome::Next;
}

Machine::Outcome Machine::encoding(Invocation& t, OpId op) {
  EncodingDatum made;
  switch (module_.op(op).kind) {
    case EncodingLayoutDense:
      made.dense = true;
      break;
    case EncodingLayoutStrided: {
      auto strides =
          indices(t, op, module_.operands(op), attr_slot(EncodingLayoutStrided, "static_strides"));
      if (!strides) return Outcome::Stop;
      made.strides = std::move(*strides);
      break;
    }
    case EncodingDefine:
      made.attr = module_.attr_ids(op)[attr_slot(EncodingDefine, "spec")];
      break;
    case EncodingIsa: {
      const auto* found =
          std::get_if<std::shared_ptr<const EncodingDatum>>(&get(t, module_.operand(op, 0)));
      if (found == nullptr) {
        not_a_value(op, get(t, module_.operand(op, 0)));
        return Outcome::Stop;
      }
      const AttrId spec = module_.attr_ids(op)[attr_slot(EncodingIsa, "spec")];
      const auto* family = encoding_family_of(module_, spec);
      bool same = (*found)->attr == spec;
      if (family != nullptr && family->family == EncodingFamily::Dense) same |= (*found)->dense;
      if (family != nullptr && family->family == EncodingFamily::Strided && (*found)->strides) {
        const AttrId strides = encoding_argument(module_, spec, "strides");
        same =
            strides.valid() && std::ranges::equal(module_.attrs[strides].ints, *(*found)->strides);
      }
      set_scalar(t, op, {ScalarKind::I1, same});
      return Outcome::Next;
    }
    default:
      unsupported(op);
      return Outcome::Stop;
  }
  set(t, module_.result(op), std::make_shared<const EncodingDatum>(std::move(made)));
  return Outcome::Next;
}

Machine::Outcome Machine::storage(Invocation& t, OpId op) {
  switch (module_.op(op).kind) {
    case BufferAlloca:
      return allocate(t, op);
    case BufferView:
      return make_view(t, op);
    case BufferAssumeNoalias:
    case BufferAssumeAlignment:
    case BufferAssumeMemorySpace:
    case BufferAssumeSameRoot:
      return assume_storage(t, op);
    case BufferLength: {
      const auto root = buffer(t, op, module_.operand(op, 0));
      if (!root) return Outcome::Stop;
      set_scalar(t, op, {ScalarKind::Offset, root->size});
      return Outcome::Next;
    }
    case BufferPack: {
      uint64_t total = 0;
      uint64_t greatest = 1;
      const auto aligns = module_.attr(op, attr_slot(BufferPack, "align")).ints;
      const auto place = [&](uint64_t align) {
        return !__builtin_add_overflow(total, align - 1, &total) &&
               ((total -= total % align), static_cast<int64_t>(total) >= 0);
      };
      for (size_t i = 0; i < aligns.size(); ++i) {
        const auto size = integer(t, op, module_.operand(op, static_cast<unsigned>(i)));
        if (!size) return Outcome::Stop;
        const auto align = static_cast<uint64_t>(aligns[i]);
        greatest = std::max(greatest, align);
        const bool placed = place(align);
        set(t, module_.result(op, static_cast<unsigned>(i) + 1),
            ScalarValue{ScalarKind::Offset, total});
        if (!placed || __builtin_add_overflow(total, static_cast<uint64_t>(*size), &total)) {
          violation(op, "the ranges are out of the range of an offset");
          return Outcome::Stop;
        }
      }
      if (!place(greatest)) {
        violation(op, "the ranges are out of the range of an offset");
        return Outcome::Stop;
      }
      set_scalar(t, op, {ScalarKind::Offset, total});
      return Outcome::Next;
    }
    case ViewSubview:
      return subview(t, op);
    case ViewRefine:
      return refine(t, op);
    default:
      return encoding(t, op);
  }
}

}  // namespace loom::interp
