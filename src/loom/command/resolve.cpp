#include "loom/command/resolve.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "loom/command/contract.h"
#include "loom/command/counts.h"
#include "loom/command/order.h"
#include "loom/command/storage.h"
#include "loom/command/transients.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/numeric.h"
#include "loom/dialect/op_info.h"
#include "loom/pass/constants.h"

namespace loom {
namespace {

constexpr unsigned kCallee = attr_slot(OpKind::KernelDispatch, "callee");
constexpr unsigned kCount = operand_slot(OpKind::KernelDispatch, "count");
constexpr unsigned kArgs = operand_slot(OpKind::KernelDispatch, "args");
constexpr unsigned kSize = operand_slot(OpKind::KernelDispatch, "size");

std::optional<uint32_t> exact_u32(const Module& module, ValueId value) {
  const std::optional<int64_t> exact = exact_int(module, value);
  if (!exact || *exact < 0 || *exact > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*exact);
}

// The bits of a constant's value, zero-extended.
std::optional<uint64_t> exact_bits(const Module& module, ValueId value) {
  const OpId op = module.defining_op(value);
  if (!op.valid()) return std::nullopt;
  static_assert(attr_slot(OpKind::IndexConstant, "value") == 0 &&
                attr_slot(OpKind::ScalarConstant, "value") == 0);
  const OpKind kind = module.op(op).kind;
  if (kind != OpKind::IndexConstant && kind != OpKind::ScalarConstant) return std::nullopt;
  const auto exact = from_literal(module.attr(op, 0), module.types[module.type_of(value)].element);
  return exact ? std::optional(exact->bits) : std::nullopt;
}

// What had to become exact for the operation to vanish.
const char* open_part(OpKind kind) {
  if (kind == OpKind::ScfFor) return "bounds";
  return kind == OpKind::ScfSwitch || kind == OpKind::ScfLookup ? "selector" : "condition";
}

class Resolver {
 public:
  Resolver(const Module& module, OpId root, const Projection& projection, EntryTable& entries,
           PreparedProgram& program, Diagnostics& diagnostics)
      : module_(module),
        root_(root),
        projection_(projection),
        entries_(entries),
        program_(program),
        diagnostics_(diagnostics),
        storage_(module, root, program, diagnostics) {}

  bool run() {
    program_.symbol = symbol_text(module_, root_);
    if (!storage_.classify()) return false;
    walk();
    return ok_;
  }

 private:
  struct Open {
    ScheduleNode::Kind kind;
    OpId next;
    uint32_t node;  // the node that this region's children belong to
    bool owner;     // the region made that node itself
  };

  void walk() {
    add_node(ScheduleNode::Kind::Serial, 0);
    std::vector<Open> open{
        {ScheduleNode::Kind::Serial, module_.region(module_.op_region(root_, 0)).first, 0, true}};
    while (!open.empty() && !diagnostics_.stopped()) {
      Open& top = open.back();
      if (!top.next.valid()) {
        const Open done = top;
        open.pop_back();
        if (done.owner && !open.empty()) close(done.node, open.back().node);
        continue;
      }
      const OpId id = top.next;
      top.next = module_.op(id).next;
      const OpKind kind = module_.op(id).kind;
      if (kind == OpKind::CommandSerial || kind == OpKind::CommandConcurrent) {
        enter(id, open);
      } else if (kind == OpKind::KernelDispatch) {
        dispatch(id, top.node);
      } else {
        check_closed(id);
      }
    }
    if (!ok_) return;
    normalize();
    const CommandOrder order(program_);
    std::vector<std::string> names;
    for (const uint32_t entry : program_.slots) names.push_back(entries_.symbol(entry));
    ok_ = check_counts(program_, names, access_, order, diagnostics_);
    place_transients(program_, order);
  }

  void add_node(ScheduleNode::Kind kind, uint32_t command) {
    program_.schedule.push_back({kind, command, 0});
    children_.push_back(0);
  }

  void enter(OpId id, std::vector<Open>& open) {
    const auto kind = module_.op(id).kind == OpKind::CommandSerial ? ScheduleNode::Kind::Serial
                                                                   : ScheduleNode::Kind::Concurrent;
    const OpId first = module_.region(module_.op_region(id, 0)).first;
    const bool owner = open.back().kind != kind;
    const uint32_t node =
        owner ? static_cast<uint32_t>(program_.schedule.size()) : open.back().node;
    if (owner) add_node(kind, 0);
    open.push_back({kind, first, node, owner});
  }

  // An empty region adds nothing.
  void close(uint32_t node, uint32_t parent) {
    if (children_[node] == 0) {
      program_.schedule.resize(node);
      children_.resize(node);
      return;
    }
    program_.schedule[node].end = static_cast<uint32_t>(program_.schedule.size());
    ++children_[parent];
  }

  // Drops inner nodes that order nothing: those with one child, and those of the same kind as the
  // node that is left around them.
  void normalize() {
    auto& nodes = program_.schedule;
    nodes[0].end = static_cast<uint32_t>(nodes.size());
    struct Kept {
      uint32_t old_end;
      uint32_t number;
    };
    std::vector<ScheduleNode> kept;
    std::vector<Kept> around;
    const auto close_until = [&](uint32_t old) {
      while (!around.empty() && around.back().old_end == old) {
        kept[around.back().number].end = static_cast<uint32_t>(kept.size());
        around.pop_back();
      }
    };
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      close_until(i);
      ScheduleNode node = nodes[i];
      const auto number = static_cast<uint32_t>(kept.size());
      if (node.kind == ScheduleNode::Kind::Command) {
        node.end = number + 1;
        kept.push_back(node);
        continue;
      }
      const bool plain =
          i != 0 && (children_[i] == 1 || kept[around.back().number].kind == node.kind);
      if (plain) continue;
      kept.push_back(node);
      around.push_back({node.end, number});
    }
    close_until(static_cast<uint32_t>(nodes.size()));
    nodes = std::move(kept);
  }

  void check_closed(OpId id) {
    const OpInfo& info = op_info(module_.op(id).kind);
    if (info.effect != Effect::Nested && info.kind != OpKind::ScfLookup) return;
    std::string repair;
    for (ValueId operand : module_.operands(id)) {
      if (exact_int(module_, operand)) continue;
      repair = storage_.closing_repair(operand);
      if (!repair.empty()) break;
    }
    diagnostics_.emit(
        Diag::CommandTopology, module_.location(id),
        {{"part", open_part(info.kind)}, {"op", std::string(info.name)}, {"repair", repair}});
    ok_ = false;
    open_table_ |= info.kind == OpKind::ScfLookup;
  }

  void dispatch(OpId id, uint32_t node) {
    if (open_table_) return;  // what it gets from the table is open for the same reason
    const StringId symbol = module_.attr(id, kCallee).string();
    const ProjectedKernel& kernel = projection_.at(symbol);
    DispatchCommand command;
    const auto size = workgroup_size(id, kernel);
    const bool counted = counts(id, symbol, command);
    if (!size || !counted) {
      ok_ = false;
      return;
    }
    command.argument_begin = static_cast<uint32_t>(program_.arguments.size());
    if (!arguments(id, symbol, kernel.kernel)) {
      ok_ = false;
      return;
    }
    command.argument_count =
        static_cast<uint32_t>(program_.arguments.size()) - command.argument_begin;
    // Launches of one kernel tend to come in runs.
    if (symbol != last_symbol_ || *size != last_size_) {
      last_symbol_ = symbol;
      last_size_ = *size;
      last_slot_ = slot_of(entries_.add(module_, symbol, kernel.kernel, *size));
    }
    command.slot = last_slot_;
    const auto number = static_cast<uint32_t>(program_.commands.size());
    program_.commands.push_back(command);
    program_.locations.push_back(module_.location(id));
    add_node(ScheduleNode::Kind::Command, number);
    ++children_[node];
  }

  uint32_t slot_of(uint32_t entry) {
    if (slot_of_entry_.size() <= entry) slot_of_entry_.resize(entry + 1, -1);
    if (slot_of_entry_[entry] < 0) {
      slot_of_entry_[entry] = static_cast<int32_t>(program_.slots.size());
      program_.slots.push_back(entry);
    }
    return static_cast<uint32_t>(slot_of_entry_[entry]);
  }

  bool counts(OpId id, StringId symbol, DispatchCommand& command) {
    const auto values = operand_group(module_, id, kCount);
    if (values.size() == 1 && !module_.types.is_scalar(module_.type_of(values[0]))) {
      const auto storage = storage_.resolve_count(values[0], id, module_.strings.text(symbol));
      if (storage) command.indirect = indirect_row(*storage);
      return storage.has_value();
    }
    for (size_t axis = 0; axis < values.size(); ++axis) {
      if (const auto exact = exact_u32(module_, values[axis])) {
        command.count[axis] = *exact;
        continue;
      }
      const std::string closing = storage_.closing_repair(values[axis]);
      diagnostics_.emit(Diag::CommandCount, module_.location(id),
                        {{"kernel", std::string(module_.strings.text(symbol))},
                         {"axis", std::string(1, "xyz"[axis])},
                         {"repair", closing.empty() ? "use a view<3xi32> count"
                                                    : closing + " or use a view<3xi32> count"}});
      return false;
    }
    return true;
  }

  uint32_t indirect_row(const BufferRef& storage) {
    const auto [found, fresh] =
        indirect_rows_.try_emplace({storage.storage, storage.index, storage.offset},
                                   static_cast<uint32_t>(program_.indirect_storage.size()));
    if (fresh) program_.indirect_storage.push_back(storage);
    return found->second;
  }

  std::optional<std::array<uint32_t, 3>> workgroup_size(OpId id, const ProjectedKernel& kernel) {
    const auto values = operand_group(module_, id, kSize);
    if (values.empty() && kernel.fixed_size) return kernel.fixed_size;
    std::array<uint32_t, 3> size{};
    ValueId open;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto exact = exact_u32(module_, values[i]);
      if (!exact || *exact == 0) {
        open = values[i];
        break;
      }
      size[i] = *exact;
    }
    if (values.size() == 3 && !open.valid()) return size;
    diagnostics_.emit(Diag::CommandWorkgroupSize, module_.location(id),
                      {{"kernel", std::string(symbol_text(module_, kernel.kernel))},
                       {"repair", open.valid() ? storage_.closing_repair(open)
                                               : "state it with a workgroup_size(...) clause"}});
    return std::nullopt;
  }

  bool arguments(OpId id, StringId symbol, OpId kernel) {
    const auto values = operand_group(module_, id, kArgs);
    const auto facet = module_.access_facets.find(kernel.index());
    for (size_t i = 0; i < values.size(); ++i) {
      const TypeId type = module_.type_of(values[i]);
      if (module_.types.is_scalar(type)) {
        if (!scalar_argument(id, symbol, i, values[i])) return false;
        access_.push_back(Access::None);
        continue;
      }
      const bool known = facet != module_.access_facets.end() && i < facet->second.size();
      const std::optional<BufferRef> ref = storage_.resolve(values[i], id);
      if (!ref) return false;
      if (ref->storage == StorageClass::Fixed && known && facet->second[i] >= Access::Write) {
        diagnostics_
            .emit(Diag::CommandParameterWritten, module_.location(id),
                  {{"kernel", std::string(module_.strings.text(symbol))},
                   {"index", fmt::format("{}", i)}})
            .notes.push_back({module_.location(kernel), "the kernel is defined here"});
        return false;
      }
      program_.arguments.push_back({Argument::Kind::Buffer, 0, *ref});
      access_.push_back(known ? facet->second[i] : Access::ReadWrite);
    }
    return true;
  }

  bool scalar_argument(OpId id, StringId symbol, size_t index, ValueId value) {
    const std::optional<uint64_t> bits = exact_bits(module_, value);
    if (!bits) {
      const std::string closing = storage_.closing_repair(value);
      diagnostics_.emit(
          Diag::CommandScalarArgument, module_.location(id),
          {{"index", fmt::format("{}", index)},
           {"kernel", std::string(module_.strings.text(symbol))},
           {"repair", closing.empty() ? "pass varying scalars through storage"
                                      : closing + ", or pass varying scalars through storage"}});
      return false;
    }
    const ScalarKind kind = module_.types[module_.type_of(value)].element;
    const bool narrow = !is_address(kind) && scalar_bits(kind) <= 32;
    program_.arguments.push_back(
        {narrow ? Argument::Kind::U32 : Argument::Kind::U64, *bits, BufferRef{}});
    return true;
  }

  const Module& module_;
  OpId root_;
  const Projection& projection_;
  EntryTable& entries_;
  PreparedProgram& program_;
  Diagnostics& diagnostics_;
  StorageResolver storage_;
  std::vector<int32_t> slot_of_entry_;
  StringId last_symbol_;
  std::array<uint32_t, 3> last_size_{};
  uint32_t last_slot_ = 0;
  std::vector<uint32_t> children_;  // by schedule node
  std::vector<Access> access_;      // by argument
  std::map<std::tuple<StorageClass, uint32_t, uint64_t>, uint32_t> indirect_rows_;
  bool ok_ = true;
  bool open_table_ = false;
};

}  // namespace

uint32_t EntryTable::add(const Module& module, StringId symbol, OpId kernel,
                         const std::array<uint32_t, 3>& size) {
  const auto [found, fresh] =
      rows_.try_emplace({symbol, size}, static_cast<uint32_t>(entries_.size()));
  if (fresh) {
    entries_.push_back({std::string(module.strings.text(symbol)),
                        std::string(export_name(module, kernel)),
                        launch_contract_text(module, kernel), size, -1});
    kernels_.push_back(kernel);
  }
  return found->second;
}

bool resolve_program(const Module& module, OpId root, const Projection& projection,
                     EntryTable& entries, PreparedProgram& program, Diagnostics& diagnostics) {
  return Resolver(module, root, projection, entries, program, diagnostics).run();
}

}  // namespace loom
