#include "loom/bytecode/bytecode.h"

#include <algorithm>

#include "loom/base/check.h"
#include "loom/base/hash.h"
#include "loom/bytecode/coding.h"
#include "loom/bytecode/segment.h"
#include "loom/bytecode/symbol_index.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

constexpr std::string_view kMagic = "\x7fLOOMBC\n";
constexpr size_t kModuleSection = 0;
constexpr size_t kIndexSection = 1;
constexpr size_t kFirstBody = 2;

struct Section {
  size_t offset = 0;
  size_t size = 0;
  uint64_t hash = 0;
};

RegionId body_region(const Module& module, OpId kernel) {
  const int index = separate_region(module.op(kernel).kind);
  return index < 0 ? RegionId() : module.op_region(kernel, static_cast<unsigned>(index));
}

bool report_corrupt(Diagnostics& diagnostics, FileId file, std::string_view detail) {
  diagnostics.emit(Diag::BinaryCorrupt, {.file = file},
                   {{"format", "bytecode"}, {"detail", std::string(detail)}});
  return false;
}

void report_version(Diagnostics& diagnostics, FileId file, uint64_t major, uint64_t minor) {
  const auto version = [](uint64_t a, uint64_t b) {
    return std::to_string(a) + "." + std::to_string(b);
  };
  diagnostics.emit(Diag::BinaryVersion, {.file = file},
                   {{"found", version(major, minor)},
                    {"format", "bytecode"},
                    {"accepted", version(kBytecodeMajor, 0) + " to " +
                                     version(kBytecodeMajor, kBytecodeMinor)}});
}

class FileReader {
 public:
  FileReader(SourceFiles& files, std::string bytes, std::string_view path, Diagnostics& diagnostics,
             const ReadOptions& options)
      : bytes_(std::move(bytes)),
        file_(files.add_reference(std::string(path), hash_bytes(bytes_))),
        diagnostics_(diagnostics),
        options_(options),
        module_(files) {}

  std::optional<Module> read() {
    if (!read_sections() || !read_module()) return std::nullopt;
    return std::move(module_);
  }

 private:
  bool read_sections();
  bool read_module();
  bool intact(const Section& section) const {
    return !options_.check_hashes || hash_bytes(content(section)) == section.hash;
  }
  std::string_view content(const Section& section) const {
    return std::string_view(bytes_).substr(section.offset, section.size);
  }
  bool corrupt(std::string_view detail) { return report_corrupt(diagnostics_, file_, detail); }

  std::string bytes_;
  FileId file_;
  Diagnostics& diagnostics_;
  const ReadOptions options_;
  Module module_;
  std::vector<Section> sections_;
};

bool FileReader::read_sections() {
  if (!is_bytecode(bytes_)) return corrupt("it does not start as bytecode does");
  ByteReader in(bytes_);
  in.raw(kMagic.size());
  const uint64_t major = in.varint();
  const uint64_t minor = in.varint();
  if (in.ok() && (major != kBytecodeMajor || minor > kBytecodeMinor)) {
    report_version(diagnostics_, file_, major, minor);
    return false;
  }
  const size_t count = in.count(9);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const uint64_t size = in.varint();
    sections_.push_back({0, size, in.word64()});
  }
  for (Section& section : sections_) {
    section.offset = in.position();
    in.raw(section.size);
  }
  if (in.ok() && in.remaining() != 0) in.fail("bytes are left over");
  if (in.ok() && sections_.size() < kFirstBody) in.fail("a section is missing");
  return in.ok() || corrupt(in.error());
}

bool FileReader::read_module() {
  const Section& main = sections_[kModuleSection];
  const Section& index = sections_[kIndexSection];
  if (!intact(main) || !intact(index)) return corrupt("its bytes were changed");
  std::vector<OpId> kernels;
  if (const char* error = decode_segment(module_, module_.body(), {}, content(main), &kernels)) {
    return corrupt(error);
  }
  if (kernels.size() != sections_.size() - kFirstBody) {
    return corrupt("the number of kernel bodies is wrong");
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    const RegionId region = body_region(module_, kernels[i]);
    const Section& section = sections_[kFirstBody + i];
    module_.region(region).deferred = true;
    module_.deferred_bodies[region.index()] = {
        section.offset, section.size, section.hash, file_, {}};
  }
  if (const char* error = decode_symbol_index(module_, content(index))) return corrupt(error);
  module_.backing = std::move(bytes_);
  if (options_.defer_kernel_bodies) return true;
  for (OpId kernel : kernels) {
    if (!load_kernel_body(module_, kernel, diagnostics_, options_)) return false;
  }
  module_.backing = std::string();
  return true;
}

}  // namespace

bool is_bytecode(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::string write_bytecode(const Module& module, const WriteOptions& options) {
  SegmentWriter writer(module, options.strip, options.keep_check_places);
  std::vector<std::string> sections;
  sections.push_back(writer.encode(module.body(), {}));
  sections.push_back(encode_symbol_index(module));
  for (OpId kernel : writer.take_separate()) {
    const RegionId region = body_region(module, kernel);
    if (!module.region(region).deferred) {
      sections.push_back(writer.encode(region, signature_values(module, region)));
      continue;
    }
    LOOM_CHECK(!options.strip, "stripping needs the kernel bodies to be opened");
    const DeferredBody& body = module.deferred_bodies.at(region.index());
    sections.push_back(module.backing.substr(body.offset, body.size));
  }
  ByteWriter out;
  out.raw(kMagic);
  out.varint(kBytecodeMajor);
  out.varint(kBytecodeMinor);
  out.varint(sections.size());
  for (const std::string& section : sections) {
    out.varint(section.size());
    out.word64(hash_bytes(section));
  }
  for (const std::string& section : sections) out.raw(section);
  return out.take();
}

std::optional<Module> read_bytecode(SourceFiles& files, std::string bytes, std::string_view path,
                                    Diagnostics& diagnostics, const ReadOptions& options) {
  return FileReader(files, std::move(bytes), path, diagnostics, options).read();
}

bool load_kernel_body(Module& module, OpId kernel, Diagnostics& diagnostics,
                      const ReadOptions& options) {
  const RegionId region = body_region(module, kernel);
  if (!region.valid() || !module.region(region).deferred) return true;
  const DeferredBody& body = module.deferred_bodies.at(region.index());
  const auto bytes = std::string_view(module.backing).substr(body.offset, body.size);
  if (options.check_hashes && hash_bytes(bytes) != body.hash) {
    return report_corrupt(diagnostics, body.file, "the bytes of a kernel body were changed");
  }
  const std::vector<ValueId> outer = signature_values(module, region);
  if (const char* error = decode_segment(module, region, outer, bytes, nullptr)) {
    return report_corrupt(diagnostics, body.file, error);
  }
  module.region(region).deferred = false;
  module.deferred_bodies.erase(region.index());
  return true;
}

bool load_kernel_bodies(Module& module, Diagnostics& diagnostics) {
  std::vector<OpId> kernels;
  for_each_op(module, module.body(), [&](OpId op) { kernels.push_back(op); });
  return std::ranges::all_of(kernels,
                             [&](OpId op) { return load_kernel_body(module, op, diagnostics); });
}

void share_kernel_body(const Module& source, OpId from, Module& target, OpId to) {
  const RegionId region = body_region(source, from);
  if (!region.valid() || !source.region(region).deferred) return;
  const DeferredBody& body = source.deferred_bodies.at(region.index());
  DeferredBody copy{target.backing.size(), body.size, body.hash, body.file, {}};
  target.backing.append(source.backing, body.offset, body.size);
  for (StringId name : body.references) {
    copy.references.push_back(target.strings.intern(source.strings.text(name)));
  }
  const RegionId copied = body_region(target, to);
  target.region(copied).deferred = true;
  target.deferred_bodies[copied.index()] = std::move(copy);
}

}  // namespace loom
