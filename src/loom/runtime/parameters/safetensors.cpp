#include "loom/runtime/parameters/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "loom/runtime/parameters/byte_reader.h"

namespace loom {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr size_t kLengthSize = 8;
constexpr size_t kDataAlignment = 64;
// What the format's own reader accepts.
constexpr uint64_t kMaxHeader = 100'000'000;

struct DataType {
  std::string_view name;
  uint32_t bits;
  std::optional<ElementType> element;
};

constexpr DataType kDataTypes[] = {
    {"BOOL", 8, ElementType::I1},
    {"U8", 8, ElementType::U8},
    {"I8", 8, ElementType::I8},
    {"U16", 16, ElementType::U16},
    {"I16", 16, ElementType::I16},
    {"U32", 32, ElementType::U32},
    {"I32", 32, ElementType::I32},
    {"U64", 64, ElementType::U64},
    {"I64", 64, ElementType::I64},
    {"F8_E4M3", 8, ElementType::F8E4M3},
    {"F8_E5M2", 8, ElementType::F8E5M2},
    {"F16", 16, ElementType::F16},
    {"BF16", 16, ElementType::BF16},
    {"F32", 32, ElementType::F32},
    {"F64", 64, ElementType::F64},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F8_E8M0", 8, {}},
    {"C64", 64, {}},
};

// Reads the header as a stream of JSON events, so that a repeated key is seen and nothing is built
// that the file's size does not bound. The shape is fixed:
//   { name: { "dtype": string, "shape": [n...], "data_offsets": [n, n] }...,
//     "__metadata__": { string: string... } }
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct Tensor {
    ParameterEntry entry;
    const DataType* type = nullptr;
    std::vector<uint64_t> offsets;
  };

  std::vector<Tensor> tensors;
  std::deque<std::string> names;
  std::string error;  // set when an event returned false
  std::optional<uint64_t> syntax_error_at;

  bool start_object(std::size_t) override {
    if (state_ == State::Start) return enter(State::Names);
    if (state_ == State::TensorBody) return enter(State::Keys);
    if (state_ == State::MetadataBody) return enter(State::Metadata);
    return unexpected("an object");
  }
  bool end_object() override {
    if (state_ == State::Names) return enter(State::End);
    if (state_ == State::Metadata) return enter(State::Names);
    return finish_tensor() && enter(State::Names);
  }
  bool key(string_t& text) override {
    if (state_ == State::Names) return begin_name(text);
    if (state_ == State::Metadata) {
      if (!metadata_keys_.insert(text).second)
        return fail("metadata key '" + text + "' occurs twice");
      return enter(State::MetadataValue);
    }
    return begin_key(text);
  }
  bool string(string_t& text) override {
    if (state_ == State::MetadataValue) return enter(State::Metadata);
    if (state_ != State::Type) return unexpected("a string");
    const auto* type = std::ranges::find(kDataTypes, std::string_view(text), &DataType::name);
    if (type == std::end(kDataTypes)) return fail_tensor("unknown dtype '" + text + "'");
    tensors.back().type = type;
    return enter(State::Keys);
  }
  bool start_array(std::size_t) override {
    if (state_ == State::Shape) return enter(State::ShapeItems);
    if (state_ == State::Offsets) return enter(State::OffsetItems);
    return unexpected("an array");
  }
  bool end_array() override { return enter(State::Keys); }
  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::ShapeItems) {
      tensors.back().entry.dims.push_back(value);
    } else if (state_ == State::OffsetItems) {
      tensors.back().offsets.push_back(value);
    } else {
      return unexpected("a number");
    }
    return true;
  }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + text);
  }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    syntax_error_at = kLengthSize + (position == 0 ? 0 : position - 1);
    return fail("the header is not valid JSON");
  }

 private:
  enum class State {
    Start,
    Names,
    TensorBody,
    Keys,
    Type,
    Shape,
    ShapeItems,
    Offsets,
    OffsetItems,
    MetadataBody,
    Metadata,
    MetadataValue,
    End,
  };

  bool enter(State state) {
    state_ = state;
    return true;
  }
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  bool fail_tensor(const std::string& text) {
    return fail(fmt::format("tensor '{}': {}", tensors.back().entry.name, text));
  }
  bool unexpected(const std::string& what) {
    if (state_ == State::Start) return fail("the header is " + what + ", not an object");
    if (state_ == State::MetadataBody) return fail("__metadata__ is " + what + ", not an object");
    if (state_ == State::MetadataValue)
      return fail("a metadata value is " + what + ", not a string");
    return fail_tensor(what + " stands where it does not belong");
  }

  bool begin_name(const std::string& text) {
    if (!seen_.insert(text).second) return fail("tensor '" + text + "' occurs twice");
    if (text == kMetadataKey) return enter(State::MetadataBody);
    if (!is_valid_name(text)) return fail("a tensor name is longer than 64 KiB");
    names.push_back(text);
    tensors.emplace_back().entry.name = names.back();
    has_shape_ = has_offsets_ = false;
    return enter(State::TensorBody);
  }
  bool begin_key(const std::string& text) {
    if (text == "dtype") {
      if (tensors.back().type != nullptr) return fail_tensor("dtype occurs twice");
      return enter(State::Type);
    }
    if (text == "shape") {
      if (std::exchange(has_shape_, true)) return fail_tensor("shape occurs twice");
      return enter(State::Shape);
    }
    if (text == "data_offsets") {
      if (std::exchange(has_offsets_, true)) return fail_tensor("data_offsets occurs twice");
      return enter(State::Offsets);
    }
    return fail_tensor("unknown key '" + text + "'");
  }
  bool finish_tensor() {
    Tensor& tensor = tensors.back();
    if (tensor.type == nullptr) return fail_tensor("dtype is missing");
    if (!has_shape_) return fail_tensor("shape is missing");
    if (tensor.offsets.size() != 2) return fail_tensor("data_offsets is not a pair of numbers");
    tensor.entry.element = tensor.type->element;
    tensor.entry.type_name =
        tensor.type->element ? element_name(*tensor.type->element) : tensor.type->name;
    return true;
  }

  State state_ = State::Start;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::unordered_set<std::string> seen_;
  std::unordered_set<std::string> metadata_keys_;
};

std::unexpected<FormatError> error(std::string detail, std::optional<uint64_t> offset = {}) {
  return std::unexpected(FormatError{std::move(detail), offset});
}

// Gives every tensor its bytes, after checking its size.
FormatResult<void> place(HeaderEvents::Tensor& tensor, std::span<const std::byte> data,
                         uint64_t data_start) {
  ParameterEntry& entry = tensor.entry;
  const uint64_t begin = tensor.offsets[0];
  const uint64_t end = tensor.offsets[1];
  if (begin > end || end > data.size()) {
    return error(
        fmt::format("tensor '{}': data_offsets [{}, {}] are not a range of the {} bytes of "
                    "data",
                    entry.name, begin, end, data.size()));
  }
  const auto bits = checked_product(entry.dims, tensor.type->bits);
  if (!bits) return error(fmt::format("the size of tensor '{}' overflows", entry.name));
  if (*bits % 8 != 0) {
    return error(fmt::format("tensor '{}' is not a whole number of bytes", entry.name));
  }
  if (*bits / 8 != end - begin) {
    return error(fmt::format("tensor '{}' has {} bytes of data but its type and shape need {}",
                             entry.name, end - begin, *bits / 8));
  }
  entry.bytes = data.subspan(begin, end - begin);
  entry.offset = data_start + begin;
  return {};
}

FormatResult<void> check_coverage(const std::vector<HeaderEvents::Tensor>& tensors,
                                  uint64_t data_size, uint64_t data_start) {
  std::vector<const HeaderEvents::Tensor*> order;
  order.reserve(tensors.size());
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const auto* tensor) {
    return std::pair(tensor->offsets[0], tensor->offsets[1]);
  });
  uint64_t covered = 0;
  for (const auto* tensor : order) {
    if (tensor->offsets[0] < covered) {
      return error(fmt::format("tensor '{}' overlaps the one before it", tensor->entry.name),
                   data_start + tensor->offsets[0]);
    }
    if (tensor->offsets[0] > covered) {
      return error(fmt::format("there is a hole of {} bytes before tensor '{}'",
                               tensor->offsets[0] - covered, tensor->entry.name),
                   data_start + covered);
    }
    covered = tensor->offsets[1];
  }
  if (covered != data_size) {
    return error(fmt::format("{} bytes of data belong to no tensor", data_size - covered),
                 data_start + covered);
  }
  return {};
}

}  // namespace

bool is_safetensors(std::span<const std::byte> file) {
  ByteReader in(file);
  uint64_t length = 0;
  char first = 0;
  return in.read(length) && length <= in.remaining() && in.read(first) && first == '{';
}

FormatResult<ParsedFile> read_safetensors(std::span<const std::byte> file) {
  ByteReader in(file);
  uint64_t length = 0;
  std::string_view header;
  if (!in.read(length)) return error("the file ends inside the header length", 0);
  if (length > kMaxHeader) {
    return error(fmt::format("a header of {} bytes is longer than {}", length, kMaxHeader), 0);
  }
  if (!in.read_text(length, header)) {
    return error(fmt::format("a header of {} bytes does not fit in the file", length), 0);
  }
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &events)) {
    return error(std::move(events.error), events.syntax_error_at);
  }
  const uint64_t data_start = in.position();
  const auto data = file.subspan(data_start);
  ParsedFile parsed{FileFormat::Safetensors};
  for (auto& tensor : events.tensors) {
    if (auto placed = place(tensor, data, data_start); !placed) {
      return std::unexpected(placed.error());
    }
  }
  if (auto covered = check_coverage(events.tensors, data.size(), data_start); !covered) {
    return std::unexpected(covered.error());
  }
  for (auto& tensor : events.tensors) parsed.entries.push_back(std::move(tensor.entry));
  parsed.names = std::move(events.names);
  return parsed;
}

FormatResult<std::string> write_safetensors(std::span<const ParameterSource> arrays) {
  std::vector<const ParameterSource*> order;
  std::unordered_set<std::string_view> names;
  for (const ParameterSource& array : arrays) {
    if (!is_valid_name(array.name) || array.name == kMetadataKey) {
      return error(fmt::format("'{}' cannot name an array in a safetensors file", array.name));
    }
    if (!names.insert(array.name).second) {
      return error(fmt::format("two arrays are named '{}'", array.name));
    }
    order.push_back(&array);
  }
  // All point into `arrays`, so that equal sizes keep its order.
  std::ranges::sort(order, [](const ParameterSource* a, const ParameterSource* b) {
    const size_t size_a = element_size(a->type.element);
    const size_t size_b = element_size(b->type.element);
    return size_a != size_b ? size_a > size_b : a < b;
  });
  nlohmann::ordered_json::object_t header;
  uint64_t offset = 0;
  for (const ParameterSource* array : order) {
    const auto* type =
        std::ranges::find(kDataTypes, std::optional(array->type.element), &DataType::element);
    nlohmann::ordered_json entry;
    entry["dtype"] = type->name;
    entry["shape"] = array->type.dims;
    entry["data_offsets"] = {offset, offset + array->bytes.size()};
    // The keys are distinct, so the linear search that operator[] does would only cost time.
    header.emplace_back(array->name, std::move(entry));
    offset += array->bytes.size();
  }
  std::string text = nlohmann::ordered_json(std::move(header)).dump();
  text.resize((kLengthSize + text.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment -
                  kLengthSize,
              ' ');
  std::string out;
  out.reserve(kLengthSize + text.size() + offset);
  append_bytes(out, static_cast<uint64_t>(text.size()));
  out += text;
  for (const ParameterSource* array : order) {
    out.append(reinterpret_cast<const char*>(array->bytes.data()), array->bytes.size());
  }
  return out;
}

}  // namespace loom
