#include "loom/runtime/parameters/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

#include "loom/runtime/parameters/byte_reader.h"

namespace loom {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint32_t kVersion = 3;
constexpr uint32_t kDefaultAlignment = 32;
constexpr size_t kMaxRank = 4;
// Name length, rank, type and offset of a tensor without name and dimensions.
constexpr uint64_t kSmallestTensorInfo = 8 + 4 + 4 + 8;
// Key length, type and a one-byte value.
constexpr uint64_t kSmallestMetadata = 8 + 4 + 1;

struct TensorType {
  std::string_view name;
  uint32_t id;
  uint32_t block;  // elements in a block of the innermost axis
  uint32_t bytes;  // of a block
  std::optional<ElementType> element;
};

constexpr TensorType kTensorTypes[] = {
    {"f32", 0, 1, 4, ElementType::F32},
    {"f16", 1, 1, 2, ElementType::F16},
    {"Q4_0", 2, 32, 18, {}},
    {"Q4_1", 3, 32, 20, {}},
    {"Q5_0", 6, 32, 22, {}},
    {"Q5_1", 7, 32, 24, {}},
    {"Q8_0", 8, 32, 34, {}},
    {"Q8_1", 9, 32, 36, {}},
    {"Q2_K", 10, 256, 84, {}},
    {"Q3_K", 11, 256, 110, {}},
    {"Q4_K", 12, 256, 144, {}},
    {"Q5_K", 13, 256, 176, {}},
    {"Q6_K", 14, 256, 210, {}},
    {"Q8_K", 15, 256, 292, {}},
    {"IQ2_XXS", 16, 256, 66, {}},
    {"IQ2_XS", 17, 256, 74, {}},
    {"IQ3_XXS", 18, 256, 98, {}},
    {"IQ1_S", 19, 256, 50, {}},
    {"IQ4_NL", 20, 32, 18, {}},
    {"IQ3_S", 21, 256, 110, {}},
    {"IQ2_S", 22, 256, 82, {}},
    {"IQ4_XS", 23, 256, 136, {}},
    {"i8", 24, 1, 1, ElementType::I8},
    {"i16", 25, 1, 2, ElementType::I16},
    {"i32", 26, 1, 4, ElementType::I32},
    {"i64", 27, 1, 8, ElementType::I64},
    {"f64", 28, 1, 8, ElementType::F64},
    {"IQ1_M", 29, 256, 56, {}},
    {"bf16", 30, 1, 2, ElementType::BF16},
    {"TQ1_0", 34, 256, 54, {}},
    {"TQ2_0", 35, 256, 66, {}},
    {"MXFP4", 39, 32, 17, {}},
};

const TensorType* find_type(uint32_t id) {
  const auto* it = std::ranges::find(kTensorTypes, id, &TensorType::id);
  return it == std::end(kTensorTypes) ? nullptr : it;
}
const TensorType* find_type(ElementType element) {
  const auto* it = std::ranges::find(kTensorTypes, std::optional(element), &TensorType::element);
  return it == std::end(kTensorTypes) ? nullptr : it;
}

enum MetadataType : uint32_t { kUint32 = 4, kBool = 7, kString = 8, kArray = 9 };

// Bytes of a value of fixed size, 0 for strings, arrays and unknown types.
uint64_t scalar_size(uint32_t type) {
  constexpr uint8_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kSizes) ? kSizes[type] : 0;
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

class GgufReader {
 public:
  explicit GgufReader(std::span<const std::byte> file) : file_(file), in_(file) {}

  FormatResult<ParsedFile> read() {
    if (!read_header() || !read_metadata() || !read_tensors() || !place_tensors() ||
        !check_overlap()) {
      return std::unexpected(std::move(error_));
    }
    return std::move(parsed_);
  }

 private:
  bool fail(std::string detail) { return fail_at(in_.position(), std::move(detail)); }
  bool fail_at(uint64_t offset, std::string detail) {
    error_ = {std::move(detail), offset};
    return false;
  }
  bool truncated(std::string_view what) {
    return fail(fmt::format("the file ends inside {}", what));
  }

  bool read_header() {
    std::string_view magic;
    if (!in_.read_text(kMagic.size(), magic) || magic != kMagic) {
      return fail_at(0, "it does not begin with GGUF");
    }
    uint32_t version = 0;
    if (!in_.read(version)) return truncated("the header");
    if (version != 2 && version != 3) {
      const uint32_t swapped = std::byteswap(version);
      if (swapped == 2 || swapped == 3) return fail_at(4, "big-endian GGUF is not supported");
      return fail_at(4, fmt::format("GGUF version {} is not supported; 2 and 3 are", version));
    }
    parsed_.format = FileFormat::Gguf;
    parsed_.version = version;
    if (!in_.read(tensor_count_) || !in_.read(metadata_count_)) return truncated("the header");
    if (tensor_count_ > in_.remaining() / kSmallestTensorInfo) {
      return fail_at(8, fmt::format("{} tensors do not fit in the file", tensor_count_));
    }
    if (metadata_count_ > in_.remaining() / kSmallestMetadata) {
      return fail_at(16, fmt::format("{} metadata values do not fit in the file", metadata_count_));
    }
    return true;
  }

  bool read_string(std::string_view& text, std::string_view what) {
    uint64_t size = 0;
    if (!in_.read(size)) return truncated(what);
    if (!in_.read_text(size, text)) {
      return fail(fmt::format("{} of {} bytes does not fit in the file", what, size));
    }
    return true;
  }

  bool read_metadata() {
    std::unordered_set<std::string_view> keys;
    for (uint64_t i = 0; i < metadata_count_; ++i) {
      const size_t start = in_.position();
      std::string_view key;
      if (!read_string(key, "a metadata key")) return false;
      if (!is_valid_name(key)) {
        return fail_at(start, "a metadata key is longer than 64 KiB or not valid UTF-8");
      }
      if (!keys.insert(key).second) {
        return fail_at(start, fmt::format("metadata key '{}' occurs twice", key));
      }
      uint32_t type = 0;
      if (!in_.read(type)) return truncated("a metadata value");
      if (key == kAlignmentKey ? !read_alignment(type) : !skip_value(type)) return false;
    }
    return true;
  }

  bool read_alignment(uint32_t type) {
    if (type != kUint32) return fail("general.alignment is not a 32-bit unsigned integer");
    const size_t at = in_.position();
    if (!in_.read(alignment_)) return truncated("a metadata value");
    if (!std::has_single_bit(alignment_)) {
      return fail_at(at, fmt::format("general.alignment {} is not a power of two", alignment_));
    }
    return true;
  }

  // Arrays nest, so what is left to skip stands on a list. An array takes at least the 12 bytes of
  // its own header, which bounds the list by the file.
  bool skip_value(uint32_t type) {
    struct Pending {
      uint32_t type;
      uint64_t count;
    };
    std::vector<Pending> pending = {{type, 1}};
    while (!pending.empty()) {
      Pending& top = pending.back();
      if (const uint64_t size = scalar_size(top.type); size != 0) {
        if (!skip_scalars(top.type, size, top.count)) return false;
        pending.pop_back();
      } else if (top.count == 0 && (top.type == kString || top.type == kArray)) {
        pending.pop_back();
      } else if (top.type == kString) {
        --top.count;
        std::string_view text;
        if (!read_string(text, "a metadata string")) return false;
      } else if (top.type == kArray) {
        --top.count;
        Pending inner{};
        if (!in_.read(inner.type) || !in_.read(inner.count)) return truncated("a metadata array");
        pending.push_back(inner);
      } else {
        return fail(fmt::format("unknown metadata type {}", top.type));
      }
    }
    return true;
  }

  bool skip_scalars(uint32_t type, uint64_t size, uint64_t count) {
    const size_t start = in_.position();
    if (count > in_.remaining() / size) return truncated("a metadata value");
    (void)in_.skip(count * size);
    if (type != kBool) return true;
    for (size_t i = start; i < in_.position(); ++i) {
      if (std::to_integer<uint8_t>(file_[i]) > 1) return fail_at(i, "a boolean is neither 0 nor 1");
    }
    return true;
  }

  bool read_tensors() {
    parsed_.entries.reserve(tensor_count_);
    starts_.reserve(tensor_count_);
    std::unordered_set<std::string_view> names;
    names.reserve(tensor_count_);
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      const size_t start = in_.position();
      ParameterEntry entry;
      if (!read_string(entry.name, "a tensor name")) return false;
      if (!is_valid_name(entry.name)) {
        return fail_at(start, "a tensor name is longer than 64 KiB or not valid UTF-8");
      }
      if (!names.insert(entry.name).second) {
        return fail_at(start, fmt::format("tensor '{}' occurs twice", entry.name));
      }
      if (!read_shape(entry)) return false;
      starts_.push_back(start);
      parsed_.entries.push_back(std::move(entry));
    }
    return true;
  }

  bool read_shape(ParameterEntry& entry) {
    uint32_t rank = 0;
    if (!in_.read(rank)) return truncated("a tensor description");
    if (rank > kMaxRank) {
      return fail(fmt::format("tensor '{}' has {} dimensions; at most {} are possible", entry.name,
                              rank, kMaxRank));
    }
    entry.dims.resize(rank);
    // The innermost axis stands first in the file.
    for (auto dim = entry.dims.rbegin(); dim != entry.dims.rend(); ++dim) {
      if (!in_.read(*dim)) return truncated("a tensor description");
    }
    uint32_t id = 0;
    const size_t type_at = in_.position();
    if (!in_.read(id) || !in_.read(entry.offset)) return truncated("a tensor description");
    const TensorType* type = find_type(id);
    if (type == nullptr) {
      return fail_at(type_at, fmt::format("tensor '{}' has the unknown type {}", entry.name, id));
    }
    entry.element = type->element;
    entry.type_name = type->name;
    return measure(entry, *type);
  }

  bool measure(const ParameterEntry& entry, const TensorType& type) {
    const uint64_t innermost = entry.dims.empty() ? 1 : entry.dims.back();
    if (innermost % type.block != 0) {
      return fail(
          fmt::format("tensor '{}': an innermost dimension of {} is not a whole number of "
                      "{} blocks of {}",
                      entry.name, innermost, type.name, type.block));
    }
    std::vector<uint64_t> blocks = entry.dims;
    if (!blocks.empty()) blocks.back() /= type.block;
    const auto size = checked_product(blocks, type.bytes);
    if (!size) return fail(fmt::format("the size of tensor '{}' overflows", entry.name));
    sizes_.push_back(*size);
    return true;
  }

  bool place_tensors() {
    const uint64_t data = align_up(in_.position(), alignment_);
    for (size_t i = 0; i < parsed_.entries.size(); ++i) {
      ParameterEntry& entry = parsed_.entries[i];
      if (entry.offset % alignment_ != 0) {
        return fail_at(starts_[i], fmt::format("the offset {} of tensor '{}' is not a multiple of "
                                               "the alignment {}",
                                               entry.offset, entry.name, alignment_));
      }
      const uint64_t available = file_.size() > data ? file_.size() - data : 0;
      if (entry.offset > available || sizes_[i] > available - entry.offset) {
        return fail_at(starts_[i],
                       fmt::format("tensor '{}' of {} bytes at data offset {} reaches past the end "
                                   "of the file",
                                   entry.name, sizes_[i], entry.offset));
      }
      entry.offset += data;
      // An empty tensor may stand behind the last byte, where no span of the file begins.
      if (sizes_[i] != 0) entry.bytes = file_.subspan(entry.offset, sizes_[i]);
    }
    return true;
  }

  bool check_overlap() {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < parsed_.entries.size(); ++i) {
      if (!parsed_.entries[i].bytes.empty()) order.push_back(i);
    }
    std::ranges::sort(order, {}, [&](uint32_t i) { return parsed_.entries[i].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      const ParameterEntry& before = parsed_.entries[order[i - 1]];
      const ParameterEntry& entry = parsed_.entries[order[i]];
      if (before.offset + before.bytes.size() > entry.offset) {
        return fail_at(starts_[order[i]],
                       fmt::format("tensors '{}' and '{}' overlap", before.name, entry.name));
      }
    }
    return true;
  }

  std::span<const std::byte> file_;
  ByteReader in_;
  FormatError error_;
  ParsedFile parsed_{};
  uint64_t tensor_count_ = 0;
  uint64_t metadata_count_ = 0;
  uint32_t alignment_ = kDefaultAlignment;
  std::vector<uint64_t> sizes_;   // in bytes, as entries
  std::vector<uint64_t> starts_;  // where each entry's description begins
};

FormatResult<void> check_sources(std::span<const ParameterSource> arrays) {
  std::unordered_set<std::string_view> names;
  for (const ParameterSource& array : arrays) {
    if (!is_valid_name(array.name)) {
      return std::unexpected(FormatError{
          fmt::format("the name '{}' is longer than 64 KiB or not valid UTF-8", array.name), {}});
    }
    if (!names.insert(array.name).second) {
      return std::unexpected(FormatError{fmt::format("two arrays are named '{}'", array.name), {}});
    }
    if (find_type(array.type.element) == nullptr) {
      return std::unexpected(FormatError{fmt::format("GGUF has no element type for the {} of '{}'",
                                                     element_name(array.type.element), array.name),
                                         {}});
    }
    if (array.type.dims.size() > kMaxRank) {
      return std::unexpected(
          FormatError{fmt::format("GGUF holds at most {} dimensions, but '{}' has {}", kMaxRank,
                                  array.name, array.type.dims.size()),
                      {}});
    }
  }
  return {};
}

}  // namespace

bool is_gguf(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

FormatResult<ParsedFile> read_gguf(std::span<const std::byte> file) {
  return GgufReader(file).read();
}

FormatResult<std::string> write_gguf(std::span<const ParameterSource> arrays) {
  if (auto checked = check_sources(arrays); !checked) return std::unexpected(checked.error());
  std::string out(kMagic);
  append_bytes(out, kVersion);
  append_bytes(out, static_cast<uint64_t>(arrays.size()));
  append_bytes(out, uint64_t{1});
  append_bytes(out, static_cast<uint64_t>(kAlignmentKey.size()));
  out += kAlignmentKey;
  append_bytes(out, static_cast<uint32_t>(kUint32));
  append_bytes(out, kDefaultAlignment);
  uint64_t offset = 0;
  for (const ParameterSource& array : arrays) {
    append_bytes(out, static_cast<uint64_t>(array.name.size()));
    out += array.name;
    append_bytes(out, static_cast<uint32_t>(array.type.dims.size()));
    for (auto dim = array.type.dims.rbegin(); dim != array.type.dims.rend(); ++dim) {
      append_bytes(out, *dim);
    }
    append_bytes(out, find_type(array.type.element)->id);
    append_bytes(out, offset);
    offset = align_up(offset + array.bytes.size(), kDefaultAlignment);
  }
  out.resize(align_up(out.size(), kDefaultAlignment));
  out.reserve(out.size() + offset);
  for (const ParameterSource& array : arrays) {
    out.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    out.resize(align_up(out.size(), kDefaultAlignment));
  }
  return out;
}

}  // namespace loom
