#include "loom/link/link.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "loom/base/file.h"
#include "loom/bytecode/bytecode.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/text/printer.h"

namespace loom {
namespace {

class Link : public testing::Test {
 protected:
  LinkInput load(const std::string& path, std::string bytes) {
    auto module =
        load_module(files_, std::move(bytes), path, diagnostics_, {.defer_kernel_bodies = true});
    EXPECT_TRUE(module) << path << "\n" << messages();
    return {module ? std::move(*module) : Module(files_), path};
  }
  LinkInput load(const std::string& name) {
    const std::string path = LOOM_LINK_MODULES "/" + name;
    return load(path, read_file(path).value_or(""));
  }
  // The module as a library would be shipped.
  LinkInput as_bytecode(const std::string& name) {
    return load(name + "bc", write_bytecode(load(name).module));
  }
  std::vector<LinkInput> one(LinkInput input) {
    std::vector<LinkInput> list;
    list.push_back(std::move(input));
    return list;
  }
  std::optional<Module> link_roots(std::span<const LinkInput> inputs, const LibraryIndex& index,
                                   std::vector<std::string> roots = {}) {
    LinkOptions options;
    options.roots = std::move(roots);
    auto linked = link(inputs, index, options, diagnostics_);
    EXPECT_TRUE(linked) << messages();
    return linked;
  }
  std::string messages() const {
    std::string out;
    for (const Diagnostic& d : diagnostics_.all()) {
      out += diag_code(d.id) + ": " + d.message() + "\n";
    }
    return out;
  }
  bool is_encoded(const Module& module, std::string_view kernel) {
    const OpId op = module.symbol(kernel);
    return op.valid() &&
           module.region(module.op_region(op, region_slot(OpKind::KernelDef, "body"))).deferred;
  }

  SourceFiles files_;
  Diagnostics diagnostics_;
};

TEST_F(Link, OneIndexServesManyLinks) {
  const LibraryIndex index(one(load("kernels.loom")));
  const auto inputs = one(load("model.loom"));
  const auto first = link_roots(inputs, index);
  const auto second = link_roots(inputs, index);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(write_bytecode(*first) == write_bytecode(*second));
}

// What an index holds, and all that a link could have added to it.
std::vector<size_t> sizes(const LibraryIndex& index) {
  std::vector<size_t> list;
  for (const LinkInput& library : index.libraries()) {
    list.insert(list.end(), {library.module.op_count(), library.module.value_count(),
                             library.module.strings.size(), library.module.attrs.size(),
                             library.module.types.size(), library.module.deferred_bodies.size()});
  }
  return list;
}

TEST_F(Link, ThreadsShareOneIndexThatDoesNotGrow) {
  std::vector<LinkInput> libraries = one(as_bytecode("kernels.loom"));
  const LibraryIndex index(std::move(libraries));
  const auto inputs = one(load("model.loom"));
  const auto expected = link_roots(inputs, index);
  ASSERT_TRUE(expected);
  const std::string bytes = write_bytecode(*expected);
  const std::vector<size_t> before = sizes(index);
  constexpr int kThreads = 8, kLinks = 50;
  std::array<int, kThreads> equal{};
  {
    std::vector<std::jthread> threads;
    for (int& count : equal) {
      threads.emplace_back([&] {
        for (int i = 0; i < kLinks; ++i) {
          Diagnostics diagnostics;
          const auto linked = link(inputs, index, LinkOptions(), diagnostics);
          count += linked && write_bytecode(*linked) == bytes;
        }
      });
    }
  }
  for (const int count : equal) EXPECT_EQ(count, kLinks);
  EXPECT_EQ(sizes(index), before);
}

TEST_F(Link, TheResultVerifies) {
  const LibraryIndex index(one(load("kernels.loom")));
  auto linked = link_roots(one(load("model.loom")), index);
  ASSERT_TRUE(linked);
  EXPECT_TRUE(verify_module(*linked, diagnostics_)) << messages();
}

TEST_F(Link, EncodedBodiesStayEncoded) {
  const LibraryIndex index(one(as_bytecode("kernels.loom")));
  const LibraryIndex text(one(load("kernels.loom")));
  auto linked = link_roots({}, index, {"plain"});
  const auto expected = link_roots({}, text, {"plain"});
  ASSERT_TRUE(linked && expected);
  EXPECT_TRUE(is_encoded(*linked, "plain"));
  ASSERT_TRUE(load_kernel_bodies(*linked, diagnostics_));
  EXPECT_EQ(print_text(*linked), print_text(*expected));
}

TEST_F(Link, AnEncodedBodyReachesWhatItMentions) {
  const LibraryIndex index(one(as_bytecode("kernels.loom")));
  const auto linked = link_roots({}, index, {"scale"});
  ASSERT_TRUE(linked);
  EXPECT_TRUE(is_encoded(*linked, "scale"));
  EXPECT_TRUE(linked->symbol("factor").valid());
}

TEST_F(Link, ARenamedSymbolIsRenamedInsideAnEncodedBody) {
  const LibraryIndex index(one(as_bytecode("kernels.loom")));
  const LibraryIndex text(one(load("kernels.loom")));
  const auto inputs = one(load("model.loom"));
  const auto linked = link_roots(inputs, index);
  const auto expected = link_roots(inputs, text);
  ASSERT_TRUE(linked && expected);
  EXPECT_TRUE(linked->symbol("factor$1").valid());
  EXPECT_EQ(print_text(*linked), print_text(*expected));
}

TEST_F(Link, ALinkHoldsNothingOfWhatItDoesNotReach) {
  std::string library;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "f" + std::to_string(i);
    library += "func.def public @" + name + "(%a" + name +
               ": index) -> (index) {\n  func.return %a" + name + " : index\n}\n\n";
  }
  const LibraryIndex index(one(load("library.loom", library)));
  const auto linked = link_roots({}, index, {"f1234"});
  ASSERT_TRUE(linked);
  EXPECT_EQ(linked->op_count(), 2u);
  EXPECT_EQ(linked->value_count(), 2u);  // the argument and the unnamed result
  EXPECT_LE(linked->strings.size(), 3u);
}

TEST_F(Link, KernelDeclarationsMayStayForPreparation) {
  const auto inputs = one(load("model.loom"));
  LinkOptions options;
  options.keep_kernel_declarations = true;
  const auto linked = link(inputs, LibraryIndex(), options, diagnostics_);
  ASSERT_TRUE(linked) << messages();
  EXPECT_EQ(linked->op(linked->symbol("scale")).kind, OpKind::KernelDecl);
  options.keep_kernel_declarations = false;
  EXPECT_FALSE(link(inputs, LibraryIndex(), options, diagnostics_));
}

TEST_F(Link, NestingDepthCostsNoStack) {
  constexpr int kDepth = 100000;
  std::string text = "config.decl @flag : i1\n\nfunc.def public @deep() {\n";
  text += "  %c = config.get @flag : i1\n";
  for (int i = 0; i < kDepth; ++i) text += "scf.if %c {\n";
  text += "func.call @leaf() : ()\n";
  for (int i = 0; i < kDepth; ++i) text += "}\n";
  text += "func.return\n}\n\nfunc.def @leaf() {\n  func.return\n}\n";
  const auto inputs = one(load("deep.loom", std::move(text)));
  const auto open = link_roots(inputs, LibraryIndex());
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->symbol("leaf").valid());
  LinkOptions options;
  ASSERT_TRUE(options.config.add_flag("flag=false", diagnostics_));
  const auto bound = link(inputs, LibraryIndex(), options, diagnostics_);
  ASSERT_TRUE(bound) << messages();
  EXPECT_FALSE(bound->symbol("leaf").valid());
}

}  // namespace
}  // namespace loom
