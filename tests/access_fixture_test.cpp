// Runs tests/fixtures/access/*.loom: `// ACCESS @kernel: none read write read_write` states the
// facet of each launch argument of that kernel.
#include "loom/dialect/access.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "loom/base/file.h"
#include "loom/dialect/verify.h"
#include "loom/text/parser.h"

namespace loom {
namespace {

std::string facets_of(const Module& module, std::string_view kernel) {
  const OpId op = module.symbol(kernel);
  if (!op.valid() || !module.access_facets.contains(op.index())) return "(no facet)";
  std::string text;
  for (const Access access : module.access_facets.at(op.index())) {
    text += (text.empty() ? "" : " ") + std::string(access_name(access));
  }
  return text;
}

TEST(AccessFixtures, EveryKernelTouchesWhatItsAnnotationSays) {
  static const std::regex kAnnotation(R"re(// ACCESS @(\S+): (.*))re");
  unsigned annotations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LOOM_ACCESS_FIXTURES)) {
    const auto text = read_file(entry.path().string());
    ASSERT_TRUE(text);
    SourceFiles files;
    Diagnostics diagnostics;
    std::optional<Module> module =
        parse_text(files, files.add_text(entry.path().string(), *text), diagnostics);
    ASSERT_TRUE(module && verify_module(*module, diagnostics)) << diagnostics.all()[0].message();
    for (std::sregex_iterator it(text->begin(), text->end(), kAnnotation), end; it != end; ++it) {
      EXPECT_EQ(facets_of(*module, (*it)[1].str()), (*it)[2]) << entry.path() << " @" << (*it)[1];
      ++annotations;
    }
  }
  EXPECT_GT(annotations, 0u);
}

}  // namespace
}  // namespace loom
