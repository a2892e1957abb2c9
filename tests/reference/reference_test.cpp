// Every `loom` block of the documentation and every module of the library and the examples is a
// canonical module that verifies, and the calls in its comments do what they say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "example.h"
#include "loom/base/file.h"
#include "loom/dialect/verify.h"
#include "loom/link/link.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"

namespace loom {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> pages() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::recursive_directory_iterator(LOOM_SOURCES "/src/loom/dialect")) {
    if (entry.path().filename() == "reference.md") all.push_back(entry.path());
  }
  if (fs::exists(LOOM_SOURCES "/docs/guide")) {
    for (const auto& entry : fs::recursive_directory_iterator(LOOM_SOURCES "/docs/guide")) {
      if (entry.path().extension() == ".md") all.push_back(entry.path());
    }
  }
  for (const char* folder : {"/lib", "/examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(std::string(LOOM_SOURCES) + folder)) {
      if (entry.path().extension() == ".loom") all.push_back(entry.path());
    }
  }
  std::ranges::sort(all);
  return all;
}

struct Block {
  size_t line = 0;  // of its first line in the page
  std::string text;
};

// Fences may be indented, as in a list.
std::vector<Block> loom_blocks(const std::string& page) {
  std::vector<Block> blocks;
  bool inside = false;
  size_t indent = 0, number = 0;
  for (size_t at = 0; at < page.size();) {
    const size_t end = std::min(page.find('\n', at), page.size());
    std::string line = page.substr(at, end - at);
    at = end + 1;
    ++number;
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    if (!inside && line.substr(begin) == "```loom") {
      inside = true;
      indent = begin;
      blocks.push_back({number + 1, ""});
    } else if (inside && line.substr(begin) == "```") {
      inside = false;
    } else if (inside) {
      blocks.back().text += line.substr(std::min(indent, begin)) + "\n";
    }
  }
  return blocks;
}

std::string report(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& one : diagnostics.all()) {
    text += fmt::format("{} at line {} of the block: {}\n", diag_code(one.id), one.location.line,
                        one.message());
  }
  return text;
}

// The module with the definitions that it takes from others of its folder.
std::optional<Module> linked_with_siblings(Module module, const fs::path& path,
                                           Diagnostics& diagnostics) {
  std::vector<LinkInput> libraries;
  for (const auto& entry : fs::directory_iterator(path.parent_path())) {
    if (entry.path().extension() != ".loom" || entry.path() == path) continue;
    SourceFiles files;
    auto library = load_module(files, read_file(entry.path().string()).value_or(""),
                               entry.path().string(), diagnostics);
    if (library) libraries.push_back({std::move(*library), entry.path().string()});
  }
  LinkOptions options;
  options.keep_kernel_declarations = true;
  std::vector<LinkInput> inputs;
  inputs.push_back({std::move(module), path.string()});
  return link(inputs, LibraryIndex(std::move(libraries)), options, diagnostics);
}

TEST(Reference, EveryBlockIsCanonicalAndDoesWhatItSays) {
  size_t calls = 0;
  for (const fs::path& path : pages()) {
    const auto page = read_file(path.string());
    ASSERT_TRUE(page.has_value()) << path;
    const bool module_alone = path.extension() == ".loom";
    for (const Block& block : module_alone ? std::vector<Block>{{1, *page}} : loom_blocks(*page)) {
      SCOPED_TRACE(fmt::format("{}:{}", fs::relative(path, LOOM_SOURCES).string(), block.line));
      SourceFiles files;
      Diagnostics diagnostics;
      auto module = parse_text(files, files.add_text("block.loom", block.text), diagnostics);
      if (!module || !verify_module(*module, diagnostics)) {
        ADD_FAILURE() << report(diagnostics);
        continue;
      }
      EXPECT_EQ(print_text(*module), block.text);
      const std::vector<std::string> examples = test::example_calls(block.text);
      if (module_alone && !examples.empty()) {
        module = linked_with_siblings(std::move(*module), path, diagnostics);
        ASSERT_TRUE(module.has_value()) << report(diagnostics);
      }
      for (const std::string& call : examples) {
        EXPECT_EQ(test::check_example(*module, call), "") << call;
        ++calls;
      }
    }
  }
  EXPECT_GT(calls, 0u);
}

TEST(Reference, AWrongResultIsNoticed) {
  SourceFiles files;
  Diagnostics diagnostics;
  const auto module = parse_text(files,
                                 files.add_text("block.loom",
                                                R"(func.def public @f(%a: i32, %b: i32) -> (i32) {
  %r = scalar.divsi %a, %b : i32
  func.return %r : i32
}
)"),
                                 diagnostics);
  ASSERT_TRUE(module.has_value()) << report(diagnostics);
  EXPECT_EQ(test::check_example(*module, "@f(7, -2) = -3"), "");
  EXPECT_EQ(test::check_example(*module, "@f(7, 0) fails: RUN/025"), "");
  EXPECT_NE(test::check_example(*module, "@f(7, -2) = -4"), "");
  EXPECT_NE(test::check_example(*module, "@f(7, 0) fails: RUN/019"), "");
  EXPECT_NE(test::check_example(*module, "@f(7, 1) fails: RUN/025"), "");
  EXPECT_NE(test::check_example(*module, "@f(7) = 7"), "");
  EXPECT_NE(test::check_example(*module, "@g(7) = 7"), "");
}

}  // namespace
}  // namespace loom
