// What perf is told of kernels.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "kernel_harness.h"

namespace loom::test {
namespace {

constexpr std::string_view kText = R"(kernel.def @scale(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%data: buffer) {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %v = buffer.view %data[%base] : buffer -> view<64xf32>
  %x = view.load %v[%i] : view<64xf32> -> f32
  %y = scalar.mulf %x, %x : f32
  view.store %y, %v[%i] : f32, view<64xf32>
  kernel.return
}
)";

// The records of a jitdump file.
struct Dump {
  struct Code {
    std::string name;
    uint64_t address = 0;
    std::string bytes;
    uint64_t number = 0;
  };
  struct Lines {
    uint64_t address = 0;
    std::set<std::string> places;
  };
  std::vector<Code> codes;
  std::vector<Lines> lines;  // in front of their code
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T number() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      ADD_FAILURE() << "the file ends early";
      rest_ = {};
      return value;
    }
    std::ranges::copy(take(sizeof(T)), reinterpret_cast<char*>(&value));
    return value;
  }
  std::string text() {
    const std::string found(rest_.substr(0, rest_.find('\0')));
    rest_.remove_prefix(std::min(rest_.size(), found.size() + 1));
    return found;
  }
  std::string_view take(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

Dump read_dump(std::string_view bytes) {
  Dump dump;
  Reader file(bytes);
  EXPECT_EQ(file.number<uint32_t>(), 0x4a695444u);
  EXPECT_EQ(file.number<uint32_t>(), 1u);
  const auto header = file.number<uint32_t>();
  file.take(header - 12);
  uint64_t before = 0;
  while (!file.done()) {
    const auto kind = file.number<uint32_t>();
    const auto size = file.number<uint32_t>();
    const auto time = file.number<uint64_t>();
    EXPECT_GE(time, before);
    before = time;
    Reader content(file.take(size - 16));
    if (kind == 2) {
      Dump::Lines lines{.address = content.number<uint64_t>()};
      for (auto count = content.number<uint64_t>(); count > 0 && !content.done(); --count) {
        content.number<uint64_t>();
        const auto line = content.number<uint32_t>();
        content.number<uint32_t>();
        lines.places.insert(content.text() + ":" + std::to_string(line));
      }
      dump.lines.push_back(std::move(lines));
    } else {
      EXPECT_EQ(kind, 0u);
      Dump::Code code;
      EXPECT_EQ(content.number<uint32_t>(), static_cast<uint32_t>(::getpid()));
      content.number<uint32_t>();
      code.address = content.number<uint64_t>();
      EXPECT_EQ(content.number<uint64_t>(), code.address);
      const auto length = content.number<uint64_t>();
      code.number = content.number<uint64_t>();
      code.name = content.text();
      code.bytes = content.take(length);
      EXPECT_EQ(code.bytes.size(), length);
      dump.codes.push_back(std::move(code));
    }
    EXPECT_TRUE(content.done());
  }
  return dump;
}

class Perf : public ::testing::Test {
 protected:
  Perf() {
    std::string name = (std::filesystem::temp_directory_path() / "loom-perf-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Perf() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(Perf, IsToldTheNameTheCodeAndTheLinesOfEachKernel) {
  Fixture fixture{std::string(kText)};
  const auto engine =
      JitEngine::create(fixture.diagnostics, {.perf_folder = folder_ + "/new/folder"});
  ASSERT_NE(engine, nullptr) << messages(fixture.diagnostics);
  const OpId kernel = fixture.module->symbol("scale");
  const auto first = engine->add(*fixture.module, kernel, {}, fixture.diagnostics);
  const auto second =
      engine->add(*fixture.module, kernel, {.tier = JitTier::Fast}, fixture.diagnostics);
  ASSERT_TRUE(first && second);

  const auto bytes = read_file(folder_ + "/new/folder/jit-" + std::to_string(::getpid()) + ".dump");
  ASSERT_TRUE(bytes);
  const Dump dump = read_dump(*bytes);
  ASSERT_EQ(dump.codes.size(), 2u);
  ASSERT_EQ(dump.lines.size(), 2u);
  const LoomKernelEntry entries[] = {first->entry(), second->entry()};
  for (size_t i = 0; i < 2; ++i) {
    const Dump::Code& code = dump.codes[i];
    EXPECT_EQ(code.name, "scale");
    EXPECT_EQ(code.number, i);
    EXPECT_EQ(code.address, reinterpret_cast<uint64_t>(entries[i]));
    EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(entries[i]), code.bytes.data(),
                          code.bytes.size()),
              0);
    EXPECT_EQ(dump.lines[i].address, code.address);
    for (const char* place : {"test.loom:8", "test.loom:9", "test.loom:10"}) {
      EXPECT_TRUE(dump.lines[i].places.contains(place)) << place;
    }
  }
}

TEST_F(Perf, AFolderThatCannotBeWrittenIsAnError) {
  Diagnostics diagnostics;
  ASSERT_TRUE(write_file(folder_ + "/file", "").has_value());
  EXPECT_EQ(JitEngine::create(diagnostics, {.perf_folder = folder_ + "/file"}), nullptr);
  ASSERT_EQ(diagnostics.error_count(), 1u);
  EXPECT_EQ(diagnostics.all()[0].id, Diag::IoWrite);
}

}  // namespace
}  // namespace loom::test
