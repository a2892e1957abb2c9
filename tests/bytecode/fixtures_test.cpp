// Every operation of the language, and every region that nests, through bytecode.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "loom/base/file.h"
#include "loom/bytecode/bytecode.h"
#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/ir/walk.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"
#include "loom/text/scatter_test_util.h"

namespace loom {
namespace {

std::string messages(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) out += diag_code(d.id) + ": " + d.message() + "\n";
  return out;
}

std::vector<std::string> fixture_texts() {
  std::vector<std::string> texts;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOOM_SOURCE "/tests/fixtures/text")) {
    texts.push_back(read_file(entry.path().string()).value_or(""));
  }
  return texts;
}

struct Read {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<Module> module;

  static Read text(std::string text) {
    Read read;
    const FileId file = read.files.add_text("m.loom", std::move(text));
    read.module = parse_text(read.files, file, read.diagnostics);
    return read;
  }
  static Read bytes(const std::string& bytes, ReadOptions options = {}) {
    Read read;
    read.module = read_bytecode(read.files, bytes, "m.loombc", read.diagnostics, options);
    return read;
  }
};

TEST(BytecodeFixtures, CommentsAnywhereComeBack) {
  for (const std::string& fixture : fixture_texts()) {
    for (unsigned seed = 100; seed < 110; ++seed) {
      size_t comments = 0;
      const auto parsed = Read::text(scatter(fixture, seed, comments));
      ASSERT_TRUE(parsed.module) << messages(parsed.diagnostics);
      const auto back = Read::bytes(write_bytecode(*parsed.module));
      ASSERT_TRUE(back.module) << messages(back.diagnostics);
      EXPECT_EQ(print_text(*back.module), print_text(*parsed.module));
    }
  }
}

// Whatever the reader returns must be safe to verify, print and write.
void use(const std::string& bytes, bool check_hashes) {
  auto read = Read::bytes(bytes, {.check_hashes = check_hashes});
  ASSERT_NE(read.module.has_value(), read.diagnostics.has_errors());
  if (!read.module) return;
  ASSERT_TRUE(is_bytecode(write_bytecode(*read.module)));
  Diagnostics verification;
  if (verify_module(*read.module, verification)) print_text(*read.module);
}

TEST(BytecodeFixtures, DamageIsSafe) {
  std::mt19937 random(11);
  for (const std::string& fixture : fixture_texts()) {
    const auto parsed = Read::text(fixture);
    ASSERT_TRUE(parsed.module);
    const std::string bytes = write_bytecode(*parsed.module);
    for (int round = 0; round < 100; ++round) {
      EXPECT_FALSE(Read::bytes(bytes.substr(0, random() % bytes.size())).module);
      use(bytes.substr(0, random() % bytes.size()), false);
    }
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << random() % 8));
      use(changed, false);
    }
    EXPECT_FALSE(Read::bytes(bytes.substr(0, bytes.size() - 1)).module);
  }
}

TEST(BytecodeFixtures, TheIndexComesBackWithDeferredBodies) {
  size_t kernels = 0;
  for (const std::string& fixture : fixture_texts()) {
    auto parsed = Read::text(fixture);
    ASSERT_TRUE(parsed.module);
    verify_module(*parsed.module, parsed.diagnostics);  // computes the access facets
    const auto back = Read::bytes(write_bytecode(*parsed.module), {.defer_kernel_bodies = true});
    ASSERT_TRUE(back.module) << messages(back.diagnostics);
    const auto row = [&](const Module& module, OpId op) {
      std::string text(op_info(module.op(op).kind).name);
      text += " @" + std::string(symbol_text(module, op));
      text += is_exported(module, op) ? " exported" : "";
      text += is_retained(module, op) ? " retained" : "";
      for (StringId name : symbol_references(module, op)) {
        text += " " + std::string(module.strings.text(name));
      }
      const auto facet = module.access_facets.find(op.index());
      if (facet == module.access_facets.end()) return text;
      for (Access access : facet->second) text += " " + std::to_string(static_cast<int>(access));
      return text;
    };
    std::vector<std::string> expected, found;
    for_each_op(*parsed.module, parsed.module->body(),
                [&](OpId op) { expected.push_back(row(*parsed.module, op)); });
    for_each_op(*back.module, back.module->body(), [&](OpId op) {
      found.push_back(row(*back.module, op));
      if (back.module->op(op).kind != OpKind::KernelDef) return;
      ++kernels;
      const auto body = back.module->op_region(op, region_slot(OpKind::KernelDef, "body"));
      EXPECT_TRUE(back.module->region(body).deferred);
    });
    EXPECT_EQ(found, expected);
  }
  EXPECT_GE(kernels, 3u);
}

// --- depth ---------------------------------------------------------------------------------------

// Each copy has its number where the text has '#'.
std::string repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const size_t mark = text.find('#');
    out += text.substr(0, mark);
    if (mark == std::string_view::npos) continue;
    out += std::to_string(i);
    out += text.substr(mark + 1);
  }
  return out;
}

struct Nest {
  const char* before;
  const char* open;
  const char* close;
  const char* after;
};

constexpr Nest kNests[] = {
    {"func.def @f(%c: i1) {\n", "scf.while {\nscf.condition %c : i1\n} do {\n", "}\n",
     "func.return\n}\n"},
    {"func.def @f(%c: i1) {\n", "scf.while {\n", "scf.condition %c : i1\n} do {\n}\n",
     "func.return\n}\n"},
    {"func.def @f(%s: index) {\n", "scf.switch %s {\ncase 1 {\n", "}\ndefault {\n}\n}\n",
     "func.return\n}\n"},
    {"func.def @f(%s: index) {\n", "scf.switch %s {\ndefault {\n", "}\n}\n", "func.return\n}\n"},
    {"template.decl @t(%c: i1)\ntemplate.def<@t> @f(%c: i1) {\n", "scf.if %c {\n", "}\n",
     "template.return\n}\n"},
    {"template.decl @t(%c: i1)\ntemplate.def<@t> @f(%c: i1) {\n", "scf.if %c {\n} else {\n", "}\n",
     "template.return\n}\n"},
    {"kernel.def @f(%n: index) {\nkernel.launch.config workgroups(%n, %n, %n) "
     "workgroup_size(%n, %n, %n) : index\n} launch(%c: i1) {\n",
     "scf.if %c {\n", "}\n", "kernel.return\n}\n"},
    {"func.def @f(%n: index) {\n", "scf.for %i# = [%n to %n step %n] {\n", "}\n",
     "func.return\n}\n"},
    {"command.program.def @f() launch() {\n", "command.concurrent {\n", "}\n",
     "command.return\n}\n"},
};

TEST(BytecodeFixtures, EveryRegionNestsWithoutStack) {
  constexpr int kDepth = 100000;
  for (const Nest& nest : kNests) {
    auto parsed = Read::text(nest.before + repeated(nest.open, kDepth) +
                             repeated(nest.close, kDepth) + nest.after);
    ASSERT_TRUE(parsed.module) << nest.open << messages(parsed.diagnostics);
    const auto back = Read::bytes(write_bytecode(*parsed.module));
    ASSERT_TRUE(back.module) << nest.open << messages(back.diagnostics);
    const std::string text = print_text(*back.module);
    EXPECT_EQ(text, print_text(*parsed.module)) << nest.open;
    const auto again = Read::text(text);
    ASSERT_TRUE(again.module) << nest.open;
    EXPECT_EQ(again.module->op_count(), parsed.module->op_count()) << nest.open;
    EXPECT_TRUE(verify_module(*parsed.module, parsed.diagnostics))
        << nest.open << messages(parsed.diagnostics);
  }
}

}  // namespace
}  // namespace loom
