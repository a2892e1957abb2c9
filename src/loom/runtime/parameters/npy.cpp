#include "loom/runtime/parameters/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "loom/runtime/parameters/byte_reader.h"

namespace loom {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kDataAlignment = 64;

struct Descriptor {
  std::string_view code;  // without the byte order
  ElementType element;
};
constexpr Descriptor kDescriptors[] = {
    {"b1", ElementType::I1},  {"i1", ElementType::I8},  {"i2", ElementType::I16},
    {"i4", ElementType::I32}, {"i8", ElementType::I64}, {"u1", ElementType::U8},
    {"u2", ElementType::U16}, {"u4", ElementType::U32}, {"u8", ElementType::U64},
    {"f2", ElementType::F16}, {"f4", ElementType::F32}, {"f8", ElementType::F64},
};

std::unexpected<FormatError> error(std::string detail, std::optional<uint64_t> offset = {}) {
  return std::unexpected(FormatError{std::move(detail), offset});
}

// The header is a Python dictionary of three known keys, in any order:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, uint64_t start) : text_(text), start_(start) {}

  FormatResult<ArrayType> parse() {
    if (!dictionary()) return std::unexpected(std::move(error_));
    return std::move(type_);
  }

 private:
  bool fail(std::string detail) {
    error_ = {std::move(detail), start_ + at_};
    return false;
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool expect(char c) {
    return accept(c) || fail(fmt::format("malformed header: '{}' is missing", c));
  }
  bool string(std::string_view& value) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return fail("malformed header: a string is missing");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return fail("malformed header: a string has no end");
    value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }

  bool dictionary() {
    if (!expect('{')) return false;
    while (!accept('}')) {
      std::string_view key;
      if (!string(key) || !expect(':') || !value(key)) return false;
      if (!accept(',') && peek() != '}') return fail("malformed header: '}' is missing");
    }
    if (peek() != '\0' || at_ != text_.size()) return fail("malformed header: text behind '}'");
    if (!has_descr_ || !has_order_ || !has_shape_) {
      return fail("the header lacks one of descr, fortran_order and shape");
    }
    return true;
  }
  bool value(std::string_view key) {
    bool* seen = key == "descr"           ? &has_descr_
                 : key == "fortran_order" ? &has_order_
                 : key == "shape"         ? &has_shape_
                                          : nullptr;
    if (seen == nullptr) return fail(fmt::format("unknown header key '{}'", key));
    if (*seen) return fail(fmt::format("header key '{}' occurs twice", key));
    *seen = true;
    if (seen == &has_descr_) return descr();
    return seen == &has_order_ ? order() : shape();
  }

  bool descr() {
    if (peek() == '[') return fail("arrays of records are not supported");
    std::string_view text;
    if (!string(text)) return false;
    const char byte_order = text.empty() ? '\0' : text.front();
    const std::string_view code = text.substr(text.empty() ? 0 : 1);
    if (byte_order == '>')
      return fail(fmt::format("big-endian elements '{}' are not supported", text));
    const auto* row = std::ranges::find(kDescriptors, code, &Descriptor::code);
    const bool known =
        row != std::end(kDescriptors) &&
        (byte_order == '<' || (byte_order == '|' && element_size(row->element) == 1));
    if (!known) return fail(fmt::format("element type '{}' is not supported", text));
    type_.element = row->element;
    return true;
  }
  bool order() {
    peek();
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("False")) {
      at_ += 5;
      return true;
    }
    if (rest.starts_with("True")) {
      return fail("the array is in Fortran order; write it in C order (numpy.ascontiguousarray)");
    }
    return fail("malformed header: fortran_order is neither True nor False");
  }
  bool shape() {
    if (!expect('(')) return false;
    while (!accept(')')) {
      peek();
      uint64_t dim = 0;
      const char* begin = text_.data() + at_;
      const auto parsed = std::from_chars(begin, text_.data() + text_.size(), dim);
      if (parsed.ec == std::errc::result_out_of_range) return fail("a dimension overflows");
      if (parsed.ec != std::errc{}) return fail("malformed header: a dimension is missing");
      at_ += static_cast<size_t>(parsed.ptr - begin);
      type_.dims.push_back(dim);
      if (!accept(',') && peek() != ')') return fail("malformed header: ')' is missing");
    }
    return true;
  }

  std::string_view text_;
  uint64_t start_;
  size_t at_ = 0;
  ArrayType type_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  FormatError error_;
};

}  // namespace

bool is_npy(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

FormatResult<NpyArray> read_npy(std::span<const std::byte> file) {
  if (!is_npy(file)) return error("it does not begin with \\x93NUMPY", 0);
  ByteReader in(file);
  (void)in.skip(kMagic.size());
  uint8_t major = 0;
  uint8_t minor = 0;
  if (!in.read(major) || !in.read(minor)) return error("the file ends inside the header");
  if (major < 1 || major > 3 || minor != 0) {
    return error(fmt::format("npy version {}.{} is not supported; 1.0 to 3.0 are", major, minor),
                 kMagic.size());
  }
  uint32_t length = 0;
  uint16_t short_length = 0;
  if (major == 1 ? !in.read(short_length) : !in.read(length)) {
    return error("the file ends inside the header");
  }
  if (major == 1) length = short_length;
  const uint64_t start = in.position();
  std::string_view header;
  if (!in.read_text(length, header)) {
    return error(fmt::format("a header of {} bytes does not fit in the file", length), start);
  }
  auto type = HeaderParser(header, start).parse();
  if (!type) return std::unexpected(type.error());
  const auto size = type->byte_size();
  if (!size) return error("the size of the array overflows", start);
  if (*size != in.remaining()) {
    return error(fmt::format("{} bytes of data follow the header but {} needs {}", in.remaining(),
                             to_string(*type), *size),
                 in.position());
  }
  return NpyArray{std::move(*type), file.subspan(in.position()), major, in.position()};
}

FormatResult<std::string> write_npy(const ArrayType& type, std::span<const std::byte> bytes) {
  const auto* row = std::ranges::find(kDescriptors, type.element, &Descriptor::element);
  if (row == std::end(kDescriptors)) {
    return error(fmt::format("npy has no element type for {}", element_name(type.element)));
  }
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': (",
                                   element_size(type.element) == 1 ? '|' : '<', row->code);
  for (size_t i = 0; i < type.dims.size(); ++i) {
    header += fmt::format("{}{}", i == 0 ? "" : ", ", type.dims[i]);
  }
  header += type.dims.size() == 1 ? ",), }" : "), }";
  const auto padded = [&](size_t prefix) {
    return (prefix + header.size() + kDataAlignment) / kDataAlignment * kDataAlignment - prefix;
  };
  const size_t short_prefix = kMagic.size() + 4;
  const size_t long_prefix = kMagic.size() + 6;
  const bool is_short = padded(short_prefix) <= 0xffff;
  header.resize(padded(is_short ? short_prefix : long_prefix) - 1, ' ');
  header.push_back('\n');
  std::string out(kMagic);
  append_bytes(out, static_cast<uint8_t>(is_short ? 1 : 2));
  append_bytes(out, uint8_t{0});
  if (is_short) {
    append_bytes(out, static_cast<uint16_t>(header.size()));
  } else {
    append_bytes(out, static_cast<uint32_t>(header.size()));
  }
  out += header;
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

}  // namespace loom
