#include "loom/aot/kernel_set.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "loom/aot/c_library_names.h"
#include "loom/aot/c_names.h"
#include "loom/dialect/access.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

using enum OpKind;

// Of one element in memory; `stored` says that it is not passed by value.
std::string_view c_type(ScalarKind kind, bool stored) {
  switch (kind) {
    case ScalarKind::Index:
    case ScalarKind::Offset:
    case ScalarKind::I64:
      return "int64_t";
    case ScalarKind::I1:
      return stored ? "uint8_t" : "bool";
    case ScalarKind::I8:
      return "int8_t";
    case ScalarKind::I16:
      return "int16_t";
    case ScalarKind::I32:
      return "int32_t";
    case ScalarKind::F8E4M3:
    case ScalarKind::F8E5M2:
      return "uint8_t";
    case ScalarKind::F16:
    case ScalarKind::BF16:
      return "uint16_t";
    case ScalarKind::F32:
      return "float";
    case ScalarKind::F64:
      return "double";
  }
  return "void";
}

bool is_encoded(const Type& type) { return type.encoding.valid() || type.encoding_value.valid(); }

// Of storage; not known where it has elements of several kinds, or encoded ones.
struct Element {
  ScalarKind kind{};
  bool known = false;
};

class Describer {
 public:
  Describer(const Module& module, std::string_view prefix, Diagnostics& diagnostics)
      : module_(module), diagnostics_(diagnostics) {
    claim(fmt::format("{}_cpu_level", prefix), "the library's own");
    claim(fmt::format("{}_use_cpu_level", prefix), "the library's own");
  }

  bool check_names(OpId kernel);
  CKernel describe(OpId kernel);

 private:
  void claim(const std::string& name, const std::string& whose) { names_.emplace(name, whose); }
  bool refuse(OpId kernel, std::string detail);
  void describe_arguments(CKernel& into, std::set<std::string>& taken);
  CParameter parameter(ValueId value, std::string_view fallback, std::set<std::string>& taken);
  void describe_storage(OpId kernel, size_t place, ValueId value, CParameter& into);
  Element element_of(OpId kernel, ValueId storage) const;
  std::vector<int64_t> ints(OpId kernel, unsigned slot) const;

  const Module& module_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::string> names_;  // of C functions, with whose they are
};

bool Describer::refuse(OpId kernel, std::string detail) {
  diagnostics_.emit(Diag::TargetHeaderName, module_.location(kernel),
                    {{"symbol", std::string(symbol_text(module_, kernel))},
                     {"name", std::string(export_name(module_, kernel))},
                     {"detail", std::move(detail)}});
  return false;
}

bool Describer::check_names(OpId kernel) {
  const std::string name(export_name(module_, kernel));
  if (!is_c_identifier(name)) return refuse(kernel, "that is no identifier");
  if (is_c_reserved(name)) return refuse(kernel, "C, C++ or the header keep that name");
  if (is_c_library_name(name)) {
    return refuse(kernel, "the C library has a function of that name");
  }
  const std::string whose = fmt::format("of '@{}'", symbol_text(module_, kernel));
  for (const std::string& each : {name, geometry_name(name), shape_name(name), run_name(name)}) {
    if (const auto found = names_.find(each); found != names_.end()) {
      return refuse(kernel, fmt::format("the function '{}' would also be {}", each, found->second));
    }
  }
  for (const std::string& each : {name, geometry_name(name), shape_name(name), run_name(name)}) {
    claim(each, whose);
  }
  return true;
}

CParameter Describer::parameter(ValueId value, std::string_view fallback,
                                std::set<std::string>& taken) {
  const std::string_view own = module_.name_of(value);
  const Type& type = module_.types[module_.type_of(value)];
  CParameter made;
  made.name = free_c_name(own.empty() ? fallback : own, taken);
  made.loom_type = type_text(module_, module_.type_of(value));
  made.is_pointer = !type.is_scalar();
  if (type.is_scalar()) {
    made.type = c_type(type.element, false);
    if (is_float(type.element) && scalar_bits(type.element) < 32) made.notes = "its bits";
  }
  return made;
}

std::vector<int64_t> Describer::ints(OpId kernel, unsigned slot) const {
  if (!module_.has_attr(kernel, slot)) return {};
  const auto list = module_.attr(kernel, slot).ints;
  return {list.begin(), list.end()};
}

// Of all views that the kernel itself makes of a buffer.
Element Describer::element_of(OpId kernel, ValueId storage) const {
  std::set<uint32_t> same = {storage.index()};  // values that are the buffer under another name
  Element element;
  bool mixed = false;
  for_each_nested(module_, kernel, [&](OpId op) {
    const Op& it = module_.op(op);
    const auto operands = module_.operands(op);
    if (it.kind == BufferView && same.contains(operands[0].index())) {
      const Type& view = module_.types[module_.type_of(module_.result(op))];
      mixed = mixed || is_encoded(view) || (element.known && element.kind != view.element);
      element = {view.element, true};
    } else if (op_info(it.kind).name.starts_with("buffer.assume.")) {
      for (unsigned i = 0; i < it.result_count && i < operands.size(); ++i) {
        if (same.contains(operands[i].index())) same.insert(module_.result(op, i).index());
      }
    }
  });
  return {element.kind, element.known && !mixed};
}

void Describer::describe_storage(OpId kernel, size_t place, ValueId value, CParameter& into) {
  const Type& type = module_.types[module_.type_of(value)];
  const Element element = type.kind == TypeKind::Buffer ? element_of(kernel, value)
                                                        : Element{type.element, !is_encoded(type)};
  const auto facets = module_.access_facets.find(kernel.index());
  const Access access =
      facets == module_.access_facets.end() ? Access::ReadWrite : facets->second[place];
  const bool written = access == Access::Write || access == Access::ReadWrite;
  into.type = fmt::format("{}{}*", written ? "" : "const ",
                          element.known ? c_type(element.kind, true) : "void");
  into.notes = access == Access::None        ? "not used"
               : access == Access::ReadWrite ? "read and written"
               : written                     ? "written"
                                             : "read";
  if (element.known && type.kind == TypeKind::Buffer) {
    into.loom_type += fmt::format(" of {}", scalar_name(element.kind));
  }
  const auto alignments = ints(kernel, attr_slot(KernelDef, "alignments"));
  if (place < alignments.size() && alignments[place] > 1) {
    into.notes += fmt::format(", begins at a multiple of {} bytes", alignments[place]);
  }
  const auto lengths = ints(kernel, attr_slot(KernelDef, "lengths"));
  if (place < lengths.size() && lengths[place] > 0) {
    into.notes += fmt::format(", {} bytes", lengths[place]);
  }
}

void Describer::describe_arguments(CKernel& into, std::set<std::string>& taken) {
  const OpId kernel = into.kernel;
  const auto workload = module_.args(module_.op_region(kernel, region_slot(KernelDef, "config")));
  for (size_t i = 0; i < workload.size(); ++i) {
    into.workload.push_back(parameter(workload[i], fmt::format("workload{}", i), taken));
  }
  const auto args = module_.args(module_.op_region(kernel, region_slot(KernelDef, "body")));
  for (size_t i = 0; i < args.size(); ++i) {
    int same = -1;
    for (size_t w = 0; w < workload.size(); ++w) {
      const bool named = !module_.name_of(args[i]).empty();
      if (named && module_.name_of(args[i]) == module_.name_of(workload[w]) &&
          module_.type_of(args[i]) == module_.type_of(workload[w])) {
        same = static_cast<int>(w);
      }
    }
    into.same_as.push_back(same);
    if (same >= 0) {
      into.arguments.push_back(into.workload[static_cast<size_t>(same)]);
      continue;
    }
    into.arguments.push_back(parameter(args[i], fmt::format("argument{}", i), taken));
    if (into.arguments.back().is_pointer)
      describe_storage(kernel, i, args[i], into.arguments.back());
  }
}

CKernel Describer::describe(OpId kernel) {
  CKernel made;
  made.kernel = kernel;
  made.name = export_name(module_, kernel);
  made.symbol = symbol_text(module_, kernel);
  std::set<std::string> taken = {made.name, geometry_name(made.name), shape_name(made.name),
                                 run_name(made.name)};
  describe_arguments(made, taken);
  for (const Predicate& predicate : where_predicates(module_, kernel)) {
    made.contract.push_back(predicate_text(module_, predicate));
  }
  if (const auto trivia = module_.op_trivia.find(kernel.index());
      trivia != module_.op_trivia.end()) {
    for (const StringId line : trivia->second.leading) {
      // What stands above a blank line is of something else.
      if (!line.valid()) {
        made.comment.clear();
        continue;
      }
      made.comment.emplace_back(module_.strings.text(line));
    }
  }
  return made;
}

}  // namespace

std::string geometry_name(std::string_view kernel) { return fmt::format("{}_geometry", kernel); }
std::string shape_name(std::string_view kernel) { return fmt::format("{}_shape", kernel); }
std::string run_name(std::string_view kernel) { return fmt::format("{}_run", kernel); }

std::string library_prefix(std::string_view file_name) {
  std::string_view stem = file_name.substr(0, file_name.find('.'));
  if (stem.starts_with("lib") && stem.size() > 3) stem.remove_prefix(3);
  return c_name_like(stem);
}

std::optional<std::vector<CKernel>> describe_kernels(Module& module, std::span<const OpId> kernels,
                                                     std::string_view prefix,
                                                     Diagnostics& diagnostics) {
  compute_access_facets(module);
  Describer describer(module, prefix, diagnostics);
  std::vector<CKernel> described;
  bool good = true;
  for (const OpId kernel : kernels) {
    good = describer.check_names(kernel) && good;
    if (good) described.push_back(describer.describe(kernel));
  }
  if (!good) return std::nullopt;
  return described;
}

}  // namespace loom
