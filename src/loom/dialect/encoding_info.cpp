#include "loom/dialect/encoding_info.h"

#include <fmt/core.h>

#include <algorithm>

#include "loom/dialect/hooks.h"
#include "loom/ir/ir_text.h"

namespace loom {
namespace {

// --- the tables ---------------------------------------------------------------------------------

constexpr std::string_view kNumericFormats =
    "none f64 f32 tf32 f16 bf16 i32 u32 i16 u16 i8 u8 i6 u6 i5 u5 i4 u4 i3 u3 i2 u2 i1 u1 f8e4m3 "
    "f8e5m2 f8e4m3fn f8e4m3fnuz f8e5m2fnuz e8m0 bf8 f6e3m2 f6e2m3 bf6 f4e2m1 ternary sign_bit "
    "codebook_index quant_i8 quant_i6 quant_i4 bfp16ebs8";
constexpr std::string_view kPackings =
    "dense_lanes little_endian_nibbles big_endian_nibbles bitfield_stream bitplane_stream "
    "multi_stream base_n_packed codebook_indices target_fragment interleaved_scale_payload "
    "separate_scale_payload";
constexpr std::string_view kTopologies =
    "none tensor_global row column channel group_1d block_1d block_2d subblock_in_superblock "
    "hierarchical per_token per_head per_page runtime_amax_derived";
constexpr std::string_view kAffines =
    "none scale_only scale_plus_min scale_plus_zero_point scale_plus_bias "
    "super_scale_times_subscale sum_correction";
constexpr std::string_view kRoundings =
    "none nearest_even nearest_away toward_zero down up stochastic satfinite overflow_to_inf "
    "overflow_to_nan flush_subnormal preserve_subnormal relu_clamp finite_only "
    "finite_flush_subnormal";
constexpr std::string_view kCodebooks =
    "none static_builtin_table static_symbol_table global_data_table dynamic_table_operand "
    "per_superblock_table";
constexpr std::string_view kSparsities =
    "none mask n_m_structured block_sparse bsr csr coo page_table moe_routing outlier_side_stream";
constexpr std::string_view kAuxiliaries =
    "scale secondary_scale scale2 scale3 scale4 scale5 scale6 scale7 zero_point minimum bias "
    "sum_correction codebook sparsity metadata indices offsets mask signs residual amax thresholds "
    "centroids outliers";

constexpr std::pair<std::string_view, std::string_view> kEnums[] = {
    {"numeric format", kNumericFormats},
    {"payload packing", kPackings},
    {"scale topology", kTopologies},
    {"affine", kAffines},
    {"rounding", kRoundings},
    {"codebook", kCodebooks},
    {"sparsity", kSparsities},
    {"auxiliary key", kAuxiliaries}};

using enum EncodingParameterKind;
constexpr EncodingParameter kStrided[] = {{"strides", Integers, {}, true}};
constexpr EncodingParameter kStorage[] = {{"layout", Layout, {}, true},
                                          {"schema", Schema, {}, true}};
constexpr EncodingParameter kOperand[] = {{"affine", Word, kAffines},
                                          {"codebook", Word, kCodebooks},
                                          {"element_format", Word, kNumericFormats},
                                          {"payload_elements", Integer, {}, true},
                                          {"payload_packing", Word, kPackings},
                                          {"payload_registers", Integer, {}},
                                          {"rounding", Word, kRoundings},
                                          {"scale_format", Word, kNumericFormats},
                                          {"scale_group_elements", Integer, {}},
                                          {"scale_group_shape", Integers, {}},
                                          {"scale_operands", Integer, {}},
                                          {"scale_topology", Word, kTopologies},
                                          {"secondary_scale_format", Word, kNumericFormats},
                                          {"sparsity", Word, kSparsities},
                                          {"sparsity_group_elements", Integer, {}},
                                          {"sparsity_group_nonzero_elements", Integer, {}},
                                          {"zero_scale_fallback", Integer, {}}};
constexpr EncodingParameter kHadamard[] = {{"normalization", Word, "none orthonormal"}};

using enum EncodingFamily;
constexpr EncodingFamilyInfo kFamilies[] = {
    {Dense, EncodingRole::Layout, "dense", {}, {}, {}},
    {Dense, EncodingRole::Layout, "encoding.layout.dense", {}, {}, {}},
    {Strided, EncodingRole::Layout, "encoding.layout.strided", {}, {}, {}},
    {Storage, EncodingRole::Storage, "encoding.storage", "physical_storage", {}, {}},
    {Operand, EncodingRole::Schema, "encoding.operand", "matrix_operand", {}, {}},
    {Hadamard,
     EncodingRole::Transform,
     "encoding.transform.hadamard",
     "transform.hadamard",
     {},
     {}},
    {Hadamard, EncodingRole::Transform, "encoding.transform.hadamard", "numeric_transform", {}, {}},
    {GgmlQ4_0, EncodingRole::Storage, "ggml.q4_0", "ggml_q4_0", {}, {32, 18, 2}},
    {GgmlQ8_0, EncodingRole::Storage, "ggml.q8_0", "ggml_q8_0", {}, {32, 34, 2}},
    {GgmlQ4K, EncodingRole::Storage, "ggml.q4_k", "ggml_q4_k", {}, {256, 144, 2}},
    {GgmlQ5K, EncodingRole::Storage, "ggml.q5_k", "ggml_q5_k", {}, {256, 176, 2}},
    {GgmlQ6K, EncodingRole::Storage, "ggml.q6_k", "ggml_q6_k", {}, {256, 210, 2}},
    {GgmlQ8_1x4, EncodingRole::Storage, "ggml.q8_1_x4", "ggml_q8_1_x4", {}, {128, 144, 16}},
};

bool has_case(std::string_view cases, std::string_view word) {
  while (!cases.empty()) {
    const size_t end = cases.find(' ');
    if (cases.substr(0, end) == word) return true;
    if (end == std::string_view::npos) break;
    cases.remove_prefix(end + 1);
  }
  return false;
}

// `encoding.<format>` for each numeric format.
const std::vector<EncodingFamilyInfo>& format_aliases() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    std::string_view rest = kNumericFormats;
    for (;;) {
      const size_t end = rest.find(' ');
      list.push_back("encoding." + std::string(rest.substr(0, end)));
      if (end == std::string_view::npos) return list;
      rest.remove_prefix(end + 1);
    }
  }();
  static const std::vector<EncodingFamilyInfo> aliases = [] {
    std::vector<EncodingFamilyInfo> list;
    for (const std::string& name : names) {
      const auto format = std::string_view(name).substr(std::string_view("encoding.").size());
      list.push_back({Operand, EncodingRole::Schema, name, {}, format, {}});
    }
    return list;
  }();
  return aliases;
}

}  // namespace

std::string_view role_name(EncodingRole role) {
  static constexpr std::string_view kNames[] = {"layout", "schema", "storage", "transform"};
  return kNames[static_cast<size_t>(role)];
}

TypeKind role_type(EncodingRole role) {
  static constexpr TypeKind kKinds[] = {TypeKind::EncodingLayout, TypeKind::EncodingSchema,
                                        TypeKind::EncodingStorage, TypeKind::EncodingTransform};
  return kKinds[static_cast<size_t>(role)];
}

std::optional<EncodingRole> role_of(TypeKind kind) {
  for (const EncodingRole role : {EncodingRole::Layout, EncodingRole::Schema, EncodingRole::Storage,
                                  EncodingRole::Transform}) {
    if (role_type(role) == kind) return role;
  }
  return std::nullopt;
}

bool is_encoding_type(TypeKind kind) {
  return kind == TypeKind::Encoding || role_of(kind).has_value();
}

const EncodingFamilyInfo* find_encoding_family(std::string_view name) {
  for (const EncodingFamilyInfo& family : kFamilies) {
    if (family.name == name || (!family.older.empty() && family.older == name)) return &family;
  }
  for (const EncodingFamilyInfo& alias : format_aliases()) {
    if (alias.name == name) return &alias;
  }
  return nullptr;
}

std::vector<std::string_view> encoding_family_names() {
  std::vector<std::string_view> names;
  for (const EncodingFamilyInfo& family : kFamilies) names.push_back(family.name);
  for (const EncodingFamilyInfo& alias : format_aliases()) names.push_back(alias.name);
  return names;
}

std::span<const EncodingParameter> encoding_parameters(EncodingFamily family) {
  switch (family) {
    case Strided:
      return kStrided;
    case Storage:
      return kStorage;
    case Operand:
      return kOperand;
    case Hadamard:
      return kHadamard;
    default:
      return {};
  }
}

std::string_view encoding_enum(std::string_view name) {
  for (const auto& [key, cases] : kEnums) {
    if (key == name) return cases;
  }
  return {};
}

const EncodingFamilyInfo* encoding_family_of(const Module& module, AttrId encoding) {
  if (!encoding.valid() || module.attrs[encoding].kind != AttrKind::Encoding) return nullptr;
  return find_encoding_family(module.strings.text(module.attrs[encoding].string()));
}

AttrId encoding_argument(const Module& module, AttrId encoding, std::string_view name) {
  for (const DictEntry& entry : module.attrs[encoding].entries) {
    if (entry.key.valid() && module.strings.text(entry.key) == name) return entry.value;
  }
  return {};
}

// --- checks -------------------------------------------------------------------------------------

namespace {

class EncodingCheck {
 public:
  EncodingCheck(const Module& module, std::vector<EncodingProblem>& problems)
      : module_(module), problems_(problems) {}

  // Nesting is bounded by the readers of attributes.
  void check(AttrId id, std::span<const std::string_view> dynamic) {
    const Attr& encoding = module_.attrs[id];
    const std::string family(module_.strings.text(encoding.string()));
    const EncodingFamilyInfo* const info = encoding_family_of(module_, id);
    if (info == nullptr) {
      add({EncodingProblem::Family, family, {}, {}, {}, {}});
      return;
    }
    const auto parameters = encoding_parameters(info->family);
    for (const DictEntry& entry : encoding.entries) {
      const std::string_view name =
          entry.key.valid() ? module_.strings.text(entry.key) : std::string_view();
      const auto found = std::ranges::find(parameters, name, &EncodingParameter::name);
      const bool fixed = name == "element_format" && !info->format.empty();
      if (found == parameters.end() || fixed) {
        add({EncodingProblem::Unknown, family, std::string(name), {}, {}, {}});
      } else {
        check_value(family, *found, entry.value);
      }
    }
    for (const EncodingParameter& parameter : parameters) {
      if (!parameter.required || encoding_argument(module_, id, parameter.name).valid() ||
          std::ranges::find(dynamic, parameter.name) != dynamic.end()) {
        continue;
      }
      add({EncodingProblem::Missing, family, std::string(parameter.name), {}, {}, {}});
    }
  }

 private:
  void add(EncodingProblem problem) { problems_.push_back(std::move(problem)); }

  void wrong_kind(const std::string& family, const EncodingParameter& parameter, AttrId value,
                  std::string_view expected) {
    add({EncodingProblem::WrongKind,
         family,
         std::string(parameter.name),
         {},
         attr_text(module_, value),
         std::string(expected)});
  }
  void wrong_value(const std::string& family, const EncodingParameter& parameter,
                   std::string detail) {
    add({EncodingProblem::Type, family, std::string(parameter.name), std::move(detail), {}, {}});
  }

  void check_value(const std::string& family, const EncodingParameter& parameter, AttrId id) {
    const Attr& value = module_.attrs[id];
    switch (parameter.kind) {
      case Integer:
        if (value.kind != AttrKind::Integer) return wrong_kind(family, parameter, id, "an integer");
        if (value.value() < 0) wrong_value(family, parameter, "it cannot be negative");
        return;
      case Integers:
        return check_integers(family, parameter, id);
      case Word:
        if (value.kind != AttrKind::Word) return wrong_kind(family, parameter, id, "a word");
        if (!has_case(parameter.cases, module_.strings.text(value.string()))) {
          wrong_value(family, parameter,
                      fmt::format("'{}' is none of {}", module_.strings.text(value.string()),
                                  parameter.cases));
        }
        return;
      case Layout:
      case Schema:
        return check_nested(family, parameter, id);
    }
  }

  void check_integers(const std::string& family, const EncodingParameter& parameter, AttrId id) {
    const Attr& value = module_.attrs[id];
    const bool empty = value.kind == AttrKind::List && value.entries.empty();
    if (value.kind != AttrKind::IntList && !empty) {
      return wrong_kind(family, parameter, id, "a list of integers");
    }
    if (std::ranges::any_of(value.ints, [](int64_t item) { return item < 0; })) {
      wrong_value(family, parameter, "an entry is negative");
    }
  }

  // A storage encoding that stands where a schema is needed brings its own.
  void check_nested(const std::string& family, const EncodingParameter& parameter, AttrId id) {
    const bool layout = parameter.kind == Layout;
    if (module_.attrs[id].kind != AttrKind::Encoding) {
      return wrong_kind(family, parameter, id, layout ? "a layout" : "a schema");
    }
    const EncodingFamilyInfo* const info = encoding_family_of(module_, id);
    if (info != nullptr) {
      const bool fits = info->role == (layout ? EncodingRole::Layout : EncodingRole::Schema) ||
                        (!layout && info->record.bytes != 0);
      if (!fits) return wrong_kind(family, parameter, id, layout ? "a layout" : "a schema");
    }
    check(id, {});
  }

  const Module& module_;
  std::vector<EncodingProblem>& problems_;
};

}  // namespace

std::vector<EncodingProblem> check_encoding(const Module& module, AttrId encoding,
                                            std::span<const std::string_view> dynamic) {
  std::vector<EncodingProblem> problems;
  EncodingCheck(module, problems).check(encoding, dynamic);
  return problems;
}

// --- where elements lie -------------------------------------------------------------------------

namespace {

ElementLayout layout_of_attr(const Module& module, AttrId encoding) {
  const EncodingFamilyInfo* const info = encoding_family_of(module, encoding);
  ElementLayout layout{ElementLayout::Unknown, {}, {}, encoding};
  if (info == nullptr) return layout;
  switch (info->family) {
    case Dense:
      layout.kind = ElementLayout::Dense;
      break;
    case Strided:
      if (const AttrId strides = encoding_argument(module, encoding, "strides"); strides.valid()) {
        const auto ints = module.attrs[strides].ints;
        layout.kind = ElementLayout::Strided;
        layout.strides.assign(ints.begin(), ints.end());
      }
      break;
    case Storage: {
      const AttrId schema = encoding_argument(module, encoding, "schema");
      const AttrId placed = encoding_argument(module, encoding, "layout");
      const EncodingFamilyInfo* const inner = encoding_family_of(module, schema);
      const EncodingFamilyInfo* const order = encoding_family_of(module, placed);
      // Records follow one another in row-major order; other placements of records are not known.
      if (inner == nullptr || order == nullptr || order->family != Dense) break;
      if (inner->record.bytes == 0) break;
      layout.kind = ElementLayout::Record;
      layout.record = inner->record;
      break;
    }
    default:
      if (info->record.bytes == 0) break;
      layout.kind = ElementLayout::Record;
      layout.record = info->record;
  }
  return layout;
}

std::optional<uint64_t> element_count(std::span<const Dim> dims) {
  uint64_t count = 1;
  for (const Dim dim : dims) {
    if (dim.is_dynamic()) return std::nullopt;
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim.extent()), &count)) {
      return std::nullopt;
    }
  }
  return count;
}

}  // namespace

std::optional<StaticEncoding> static_encoding_of(const Module& module, ValueId value) {
  const Value& v = module.value(value);
  if (v.kind != ValueKind::Result) return std::nullopt;
  const OpId op(v.owner);
  StaticEncoding found;
  switch (module.op(op).kind) {
    case OpKind::EncodingLayoutDense:
      found.dense = true;
      return found;
    case OpKind::EncodingLayoutStrided: {
      constexpr unsigned kStrides = attr_slot(OpKind::EncodingLayoutStrided, "static_strides");
      auto operands = module.operands(op);
      found.strides.emplace();
      for (int64_t stride : module.attr(op, kStrides).ints) {
        if (stride == kDynamicIndex) {
          const auto exact = exact_integer(module, operands.front());
          operands = operands.subspan(1);
          if (!exact) return std::nullopt;
          stride = *exact;
        }
        found.strides->push_back(stride);
      }
      return found;
    }
    case OpKind::EncodingDefine:
      if (module.op(op).operand_count != 0) return std::nullopt;
      found.attr = module.attr_ids(op)[attr_slot(OpKind::EncodingDefine, "spec")];
      return found;
    default:
      return std::nullopt;
  }
}

ElementLayout element_layout(const Module& module, const Type& type) {
  if (type.encoding.valid()) return layout_of_attr(module, type.encoding);
  if (!type.encoding_value.valid()) return {};
  const auto known = static_encoding_of(module, type.encoding_value);
  if (!known) return {ElementLayout::Unknown, {}, {}, {}};
  if (known->strides) return {ElementLayout::Strided, *known->strides, {}, {}};
  if (known->dense) return {};
  return layout_of_attr(module, known->attr);
}

std::optional<uint64_t> ElementLayout::position(std::span<const Dim> dims,
                                                std::span<const int64_t> index) const {
  if (index.size() != dims.size()) return std::nullopt;
  if (kind == Strided && strides.size() != dims.size()) return std::nullopt;
  uint64_t place = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (index[i] < 0) return std::nullopt;
    const auto at = static_cast<uint64_t>(index[i]);
    uint64_t step = 0;
    switch (kind) {
      case Dense:
        if (i != 0 && dims[i].is_dynamic()) return std::nullopt;
        if (i != 0 &&
            __builtin_mul_overflow(place, static_cast<uint64_t>(dims[i].extent()), &place)) {
          return std::nullopt;
        }
        step = at;
        break;
      case Strided:
        if (__builtin_mul_overflow(at, static_cast<uint64_t>(strides[i]), &step)) {
          return std::nullopt;
        }
        break;
      default:
        return std::nullopt;
    }
    if (__builtin_add_overflow(place, step, &place)) return std::nullopt;
  }
  return place;
}

bool is_dense(const Module& module, const Type& type) {
  if (!type.encoding.valid() && !type.encoding_value.valid()) return true;
  const ElementLayout layout = element_layout(module, type);
  if (layout.kind == ElementLayout::Dense) return true;
  if (layout.kind != ElementLayout::Strided || layout.strides.size() != type.rank()) return false;
  int64_t stride = 1;
  for (size_t i = type.rank(); i-- > 0;) {
    const Dim dim = type.dims[i];
    // The stride of an axis with one place does not matter.
    const bool single = !dim.is_dynamic() && dim.extent() <= 1;
    if (layout.strides[i] != stride && !single) return false;
    if (i == 0) break;
    if (dim.is_dynamic() || __builtin_mul_overflow(stride, dim.extent(), &stride)) return false;
  }
  return true;
}

std::optional<uint64_t> footprint_bytes(const Module& module, const Type& type) {
  const auto count = element_count(type.dims);
  if (!count) return std::nullopt;
  const ElementLayout layout = element_layout(module, type);
  uint64_t units = *count;
  uint64_t unit_bytes = scalar_bytes(type.element);
  switch (layout.kind) {
    case ElementLayout::Dense:
      break;
    case ElementLayout::Strided: {
      if (units == 0) break;
      std::vector<int64_t> last;
      for (const Dim dim : type.dims) last.push_back(dim.extent() - 1);
      const auto place = layout.position(type.dims, last);
      if (!place || *place == ~uint64_t{0}) return std::nullopt;
      units = *place + 1;
      break;
    }
    case ElementLayout::Record:
      if (units % layout.record.elements != 0) return std::nullopt;
      units /= layout.record.elements;
      unit_bytes = layout.record.bytes;
      break;
    case ElementLayout::Unknown:
      return std::nullopt;
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(units, unit_bytes, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace loom
