#include "loom/bytecode/bytecode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "loom/base/file.h"
#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/ir/walk.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"

namespace loom {
namespace {

namespace fs = std::filesystem;

std::string everything_path() { return LOOM_SOURCE "/tests/bytecode/modules/everything.loom"; }

std::string read_text(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text) << path;
  return text.value_or("");
}

std::string messages(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) out += diag_code(d.id) + ": " + d.message() + "\n";
  return out;
}

std::optional<Module> parse(SourceFiles& files, const std::string& path, std::string text) {
  Diagnostics diagnostics;
  auto module = parse_text(files, files.add_text(path, std::move(text)), diagnostics);
  EXPECT_TRUE(module) << path << "\n" << messages(diagnostics);
  return module;
}

std::optional<Module> read(SourceFiles& files, std::string bytes, ReadOptions options = {}) {
  Diagnostics diagnostics;
  auto module = read_bytecode(files, std::move(bytes), "m.loombc", diagnostics, options);
  EXPECT_TRUE(module) << messages(diagnostics);
  return module;
}

// Every module in the repository that parses.
std::vector<std::string> all_modules() {
  std::vector<std::string> paths;
  for (const char* root : {"/examples", "/tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(LOOM_SOURCE + std::string(root))) {
      if (entry.path().extension() == ".loom") paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

OpId kernel_of(const Module& module) {
  OpId found;
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind == OpKind::KernelDef) found = op;
  });
  return found;
}

TEST(Bytecode, TextComesBackIdentical) {
  size_t modules = 0;
  for (const std::string& path : all_modules()) {
    SourceFiles files;
    Diagnostics diagnostics;
    auto module = parse_text(files, files.add_text(path, read_text(path)), diagnostics);
    if (!module || !verify_module(*module, diagnostics)) continue;
    ++modules;
    const std::string bytes = write_bytecode(*module);
    EXPECT_TRUE(is_bytecode(bytes));
    SourceFiles other;
    auto back = read(other, bytes);
    ASSERT_TRUE(back) << path;
    EXPECT_EQ(print_text(*back), print_text(*module)) << path;
    EXPECT_TRUE(write_bytecode(*back) == bytes) << path;
  }
  EXPECT_GE(modules, 5u);
}

TEST(Bytecode, PlacesAndSourcesComeBack) {
  SourceFiles files;
  auto module = parse(files, everything_path(), read_text(everything_path()));
  ASSERT_TRUE(module);
  SourceFiles other;
  auto back = read(other, write_bytecode(*module));
  ASSERT_TRUE(back);
  std::vector<OpId> a, b;
  for_each_op(*module, module->body(), [&](OpId op) {
    a.push_back(op);
    for_each_nested(*module, op, [&](OpId nested) { a.push_back(nested); });
  });
  for_each_op(*back, back->body(), [&](OpId op) {
    b.push_back(op);
    for_each_nested(*back, op, [&](OpId nested) { b.push_back(nested); });
  });
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const Location x = module->location(a[i]);
    const Location y = back->location(b[i]);
    ASSERT_TRUE(y.valid());
    EXPECT_EQ(std::tie(x.line, x.column, x.length), std::tie(y.line, y.column, y.length));
    EXPECT_EQ(other.file(y.file).path, everything_path());
    EXPECT_EQ(other.file(y.file).hash, files.file(x.file).hash);
  }
}

TEST(Bytecode, StrippedFormsOfRenamedAndMovedTextAreEqual) {
  const std::string text =
      "func.def public @f(%a: index) -> (index) {\n"
      "  %b = index.add %a, %a : index\n"
      "  func.return %b : index\n}\n";
  const std::string other =
      "// A comment.\n\nfunc.def public @f(%x: index) -> (index) { // here\n\n"
      "  %sum = index.add %x, %x : index\n  // there\n"
      "  func.return %sum : index\n}\n";
  SourceFiles files;
  auto a = parse(files, "a.loom", text);
  auto b = parse(files, "b.loom", other);
  ASSERT_TRUE(a && b);
  EXPECT_NE(write_bytecode(*a), write_bytecode(*b));
  EXPECT_EQ(write_bytecode(*a, {.strip = true}), write_bytecode(*b, {.strip = true}));
  auto back = read(files, write_bytecode(*a, {.strip = true}));
  ASSERT_TRUE(back);
  const OpId op = back->symbol("f");
  ASSERT_TRUE(op.valid());
  EXPECT_FALSE(back->location(op).valid());
  EXPECT_EQ(back->name_of(back->args(back->op_region(op, 0))[0]), "");
}

TEST(Bytecode, ChecksKeepTheirPlacesWhenAsked) {
  SourceFiles files;
  auto module = parse(files, "a.loom",
                      "func.def public @f(%a: index, %good: i1) -> (index) {\n"
                      "  %b = index.add %a, %a : index\n"
                      "  kernel.assert %good : i1\n"
                      "  %c = sanitizer.assert.value %b [gt(%b, 0)] : index\n"
                      "  func.return %c : index\n}\n");
  ASSERT_TRUE(module);
  auto back = read(files, write_bytecode(*module, {.strip = true, .keep_check_places = true}));
  ASSERT_TRUE(back);
  std::vector<uint32_t> lines;
  for_each_nested(*back, back->symbol("f"), [&](OpId op) {
    const Location at = back->location(op);
    if (!at.valid()) return;
    lines.push_back(at.line);
    EXPECT_EQ(back->files().file(at.file).path, "a.loom");
  });
  EXPECT_EQ(lines, (std::vector<uint32_t>{3, 4}));
}

TEST(Bytecode, KeptPlacesDoNotSayWhereTheSourceLies) {
  const std::string text =
      "func.def public @f(%good: i1) {\n"
      "  kernel.assert %good : i1\n"
      "  func.return\n}\n";
  SourceFiles files;
  auto here = parse(files, "here/a.loom", text);
  auto there = parse(files, "/there/a.loom", text + "// More.\n");
  ASSERT_TRUE(here && there);
  const WriteOptions options = {.strip = true, .keep_check_places = true};
  const std::string bytes = write_bytecode(*here, options);
  EXPECT_EQ(bytes, write_bytecode(*there, options));
  EXPECT_EQ(bytes.find("here"), bytes.npos);
}

TEST(Bytecode, DeferredBodiesOpenWhenAsked) {
  SourceFiles files;
  auto module = parse(files, everything_path(), read_text(everything_path()));
  ASSERT_TRUE(module);
  Diagnostics diagnostics;
  ASSERT_TRUE(verify_module(*module, diagnostics)) << messages(diagnostics);
  const std::string bytes = write_bytecode(*module);
  auto back = read(files, bytes, {.defer_kernel_bodies = true});
  ASSERT_TRUE(back);
  const OpId kernel = kernel_of(*back);
  const RegionId body = back->op_region(kernel, region_slot(OpKind::KernelDef, "body"));
  EXPECT_TRUE(back->region(body).deferred);
  EXPECT_FALSE(back->region(body).first.valid());
  // The index answers without the body, and a deferred module writes the same bytes.
  EXPECT_EQ(back->access_facets.at(kernel.index()),
            module->access_facets.at(kernel_of(*module).index()));
  std::vector<std::string_view> references;
  for (StringId name : symbol_references(*back, kernel)) {
    references.push_back(back->strings.text(name));
  }
  EXPECT_EQ(references, (std::vector<std::string_view>{"round_up", "model.scale"}));
  EXPECT_TRUE(write_bytecode(*back) == bytes);

  ASSERT_TRUE(load_kernel_body(*back, kernel, diagnostics));
  EXPECT_FALSE(back->region(body).deferred);
  EXPECT_EQ(print_text(*back), print_text(*module));
}

TEST(Bytecode, ADamagedBodyMattersOnlyToThoseWhoOpenIt) {
  SourceFiles files;
  auto module = parse(files, everything_path(), read_text(everything_path()));
  ASSERT_TRUE(module);
  std::string bytes = write_bytecode(*module);
  bytes.back() ^= 1;  // the body is the last section
  Diagnostics diagnostics;
  EXPECT_FALSE(read_bytecode(files, bytes, "m.loombc", diagnostics));
  EXPECT_EQ(diag_code(diagnostics.all().at(0).id), "BINARY/002");
  auto deferred = read(files, bytes, {.defer_kernel_bodies = true});
  ASSERT_TRUE(deferred);
  EXPECT_FALSE(load_kernel_body(*deferred, kernel_of(*deferred), diagnostics));
}

TEST(Bytecode, OtherVersionsAreRefused) {
  SourceFiles files;
  auto module = parse(files, "a.loom", "config.def @k = 1 : index\n");
  ASSERT_TRUE(module);
  const std::string bytes = write_bytecode(*module);
  for (const size_t at : {size_t{8}, size_t{9}}) {  // major, minor
    std::string changed = bytes;
    ++changed[at];
    Diagnostics diagnostics;
    EXPECT_FALSE(read_bytecode(files, changed, "m.loombc", diagnostics));
    ASSERT_FALSE(diagnostics.all().empty());
    EXPECT_EQ(diag_code(diagnostics.all()[0].id), "BINARY/001");
  }
}

// Whatever the reader returns must be safe to verify, print and write.
void use(SourceFiles& files, const std::string& bytes, bool check_hashes, size_t& accepted) {
  Diagnostics diagnostics;
  auto module =
      read_bytecode(files, bytes, "m.loombc", diagnostics, {.check_hashes = check_hashes});
  ASSERT_NE(module.has_value(), diagnostics.has_errors());
  if (!module) return;
  ++accepted;
  const std::string again = write_bytecode(*module);
  Diagnostics verification;
  if (verify_module(*module, verification)) print_text(*module);
  ASSERT_TRUE(is_bytecode(again));
}

TEST(Bytecode, TruncationAnywhereIsDiagnosed) {
  SourceFiles files;
  auto module = parse(files, everything_path(), read_text(everything_path()));
  ASSERT_TRUE(module);
  const std::string bytes = write_bytecode(*module);
  size_t accepted = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    use(files, bytes.substr(0, length), true, accepted);
    use(files, bytes.substr(0, length), false, accepted);
  }
  EXPECT_EQ(accepted, 0u);
}

TEST(Bytecode, EveryFlippedBitIsDiagnosed) {
  SourceFiles files;
  auto module = parse(files, everything_path(), read_text(everything_path()));
  ASSERT_TRUE(module);
  const std::string bytes = write_bytecode(*module);
  size_t accepted = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    use(files, changed, true, accepted);
  }
  EXPECT_EQ(accepted, 0u);
}

// Behind the hashes the decoder itself must stand; some flips give other well-formed modules.
TEST(Bytecode, TheDecoderSurvivesFlippedBits) {
  SourceFiles files;
  auto module = parse(files, everything_path(), read_text(everything_path()));
  ASSERT_TRUE(module);
  const std::string bytes = write_bytecode(*module);
  size_t accepted = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    use(files, changed, false, accepted);
  }
  EXPECT_GT(accepted, 0u);
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = bytes;
    for (int k = 0; k < 4; ++k) changed[random() % bytes.size()] = static_cast<char>(random());
    use(files, changed, false, accepted);
  }
}

TEST(Bytecode, NestingDepthCostsNoStack) {
  constexpr int kDepth = 100000;
  std::string text = "func.def public @deep(%c: i1) {\n";
  for (int i = 0; i < kDepth; ++i) text += "scf.if %c {\n";
  for (int i = 0; i < kDepth; ++i) text += "}\n";
  text += "func.return\n}\n";
  SourceFiles files;
  auto module = parse(files, "deep.loom", std::move(text));
  ASSERT_TRUE(module);
  auto back = read(files, write_bytecode(*module));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->op_count(), module->op_count());
}

}  // namespace
}  // namespace loom
