#include "pair.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "loom/base/file.h"
#include "loom/command/launch_config.h"
#include "loom/link/load.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"
#include "loom/target/x86/compile.h"

namespace loom::lib {
namespace {

JitEngine& engine() {
  static Diagnostics diagnostics;
  static const std::unique_ptr<JitEngine> made = JitEngine::create(diagnostics);
  return *made;
}

InterpOptions options() {
  InterpOptions made;
  made.target = x86_selection().target;
  made.subgroup_size = made.target.subgroup_size.value_or(1);
  return made;
}

// Storage of the buffers of a launch at the addresses that it asks for.
class Storage {
 public:
  explicit Storage(const Launch& launch) {
    for (const auto& argument : launch.arguments) {
      const auto* const buffer = std::get_if<Buffer>(&argument);
      if (buffer == nullptr) continue;
      blocks_.emplace_back(buffer->bytes.size() + 128);
      const auto address = std::bit_cast<uintptr_t>(blocks_.back().data());
      const size_t skipped = (64 - address % 64) % 64 + launch.shift;
      spans_.push_back(std::span(blocks_.back()).subspan(skipped, buffer->bytes.size()));
      std::ranges::copy(buffer->bytes, spans_.back().begin());
    }
  }
  std::span<std::byte> operator[](size_t i) const { return spans_[i]; }
  // What the buffers hold.
  std::vector<Buffer> take(const Launch& launch) const {
    std::vector<Buffer> out;
    for (const auto& argument : launch.arguments) {
      const auto* const buffer = std::get_if<Buffer>(&argument);
      if (buffer == nullptr) continue;
      const auto bytes = spans_[out.size()];
      out.push_back({buffer->element, {bytes.begin(), bytes.end()}});
    }
    return out;
  }

 private:
  std::vector<std::vector<std::byte>> blocks_;
  std::vector<std::span<std::byte>> spans_;
};

// Of a kind with `wanted`: both no number, or infinite with one sign, or apart by no more than
// that.
bool agrees(double wanted, double got, double slack) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (std::isinf(wanted) || std::isinf(got)) return wanted == got;
  return std::fabs(wanted - got) <= slack;
}

bool is_same(ScalarValue wanted, ScalarValue got) {
  return wanted.bits == got.bits || (is_float(wanted.kind) && is_nan(wanted) && is_nan(got));
}

size_t count_of(const Buffer& buffer) { return buffer.bytes.size() / scalar_bytes(buffer.element); }

void expect_close(const Launch& launch, const std::vector<Buffer>& wanted,
                  const std::vector<Buffer>& got) {
  size_t number = 0;
  for (size_t a = 0; a < launch.arguments.size(); ++a) {
    if (!std::holds_alternative<Buffer>(launch.arguments[a])) continue;
    const Buffer& left = wanted[number];
    const Buffer& right = got[number++];
    for (size_t i = 0; i < count_of(left); ++i) {
      const ScalarValue x = element_of(left, i), y = element_of(right, i);
      const bool has_slack = a == launch.output && i < launch.slack.size();
      const bool good =
          has_slack ? agrees(to_double(x), to_double(y), launch.slack[i]) : is_same(x, y);
      ASSERT_TRUE(good) << "argument " << a << ", element " << i << ": the interpreter has "
                        << to_double(x) << ", x86-64 has " << to_double(y)
                        << (has_slack ? fmt::format(", {} apart", launch.slack[i]) : "");
    }
  }
}

// What the interpreter left against the computation in double.
void expect_oracle(const Launch& launch, const std::vector<Buffer>& got) {
  if (launch.oracle.empty()) return;
  const auto buffers = std::count_if(
      launch.arguments.begin(), launch.arguments.begin() + static_cast<ptrdiff_t>(launch.output),
      [](const auto& argument) { return std::holds_alternative<Buffer>(argument); });
  const Buffer& output = got[static_cast<size_t>(buffers)];
  for (size_t i = 0; i < launch.oracle.size(); ++i) {
    const double y = to_double(element_of(output, i));
    const double slack = launch.slack.empty() ? 0 : launch.slack[i];
    ASSERT_TRUE(agrees(launch.oracle[i], y, slack))
        << "element " << i << ": a computation in double has " << launch.oracle[i]
        << ", the interpreter has " << y << ", " << slack << " apart";
  }
}

std::string describe(const Launch& launch) {
  std::string text;
  for (const auto& argument : launch.arguments) {
    if (const auto* const value = std::get_if<ScalarValue>(&argument)) {
      text += fmt::format(
          "{} ", is_float(value->kind) ? to_double(*value) : static_cast<double>(value->bits));
    } else {
      const Buffer& buffer = std::get<Buffer>(argument);
      text += fmt::format("[{} {}] ", count_of(buffer), scalar_name(buffer.element));
    }
  }
  return text + fmt::format("behind {}", launch.shift);
}

}  // namespace

ScalarValue element_of(const Buffer& buffer, size_t i) {
  const size_t width = scalar_bytes(buffer.element);
  ScalarValue value{buffer.element, 0};
  std::memcpy(&value.bits, buffer.bytes.data() + i * width, width);
  return value;
}

Library::Library() {
  constexpr std::string_view kDefines = "\nkernel.def ";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(LOOM_LIBRARY)) {
    if (entry.path().extension() == ".loom") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string text = read_file(std::string(LOOM_LIBRARY) + "/" + name).value_or("");
    const size_t before = exports_.size();
    for (size_t at = text.find(kDefines); at != text.npos; at = text.find(kDefines, at + 1)) {
      const size_t begin = text.find('@', at) + 1;
      exports_.push_back({name, text.substr(begin, text.find('(', begin) - begin)});
    }
    if (exports_.size() == before) parts_.push_back(name);
  }
}

std::optional<LinkInput> Library::load(const std::string& file) {
  const std::string path = std::string(LOOM_LIBRARY) + "/" + file;
  Diagnostics diagnostics;
  auto module = load_module(files_, read_file(path).value_or(""), path, diagnostics);
  problems += ops::messages(diagnostics);
  if (!module) return std::nullopt;
  return LinkInput{std::move(*module), path};
}

std::optional<Module> Library::link(const Export& kernel) {
  problems.clear();
  if (!index_) {
    std::vector<LinkInput> libraries;
    for (const std::string& part : parts_) {
      auto loaded = load(part);
      if (!loaded) return std::nullopt;
      libraries.push_back(std::move(*loaded));
    }
    index_.emplace(std::move(libraries));
  }
  const auto input = load(kernel.file);
  if (!input) return std::nullopt;
  LinkOptions options;
  options.roots = {kernel.kernel};
  options.strip_check = true;
  Diagnostics diagnostics;
  auto module = loom::link(std::span(&*input, 1), *index_, options, diagnostics);
  problems += ops::messages(diagnostics);
  return module;
}

KernelPair::KernelPair(Library& library, const Library::Export& kernel, bool every_cpu)
    : name_(kernel.kernel) {
  module_ = library.link(kernel);
  auto module = library.link(kernel);
  problems_ = library.problems;
  if (!module_ || !module) return;
  Diagnostics diagnostics;
  const OpId op = module->symbol(name_);
  auto companion = write_launch_config(*module, {&op, 1}, x86_selection().target, diagnostics);
  if (companion) {
    configuration_ = load_module(module->files(), std::move(*companion), "companion", diagnostics);
  }
  problems_ += ops::messages(diagnostics);
  if (configuration_) compile(*module, every_cpu);
}

void KernelPair::compile(Module& module, bool every_cpu) {
  Diagnostics diagnostics;
  const OpId op = module.symbol(name_);
  PassContext context(module, diagnostics);
  if (expand_kernels(context, {&op, 1}, x86_selection())) {
    for (const JitTier tier : {JitTier::Fast, JitTier::Optimized}) {
      auto code = engine().add(module, op, {.tier = tier}, diagnostics);
      const char* const name = tier == JitTier::Fast ? "fast" : "optimized";
      if (code) compiled_.push_back({name, std::move(*code)});
    }
    const bool runs[] = {__builtin_cpu_supports("x86-64-v2") != 0,
                         __builtin_cpu_supports("x86-64-v3") != 0,
                         __builtin_cpu_supports("x86-64-v4") != 0};
    for (int level = 2; every_cpu && level <= 4; ++level) {
      const std::string cpu = fmt::format("x86-64-v{}", level);
      const auto object =
          compile_x86(module, {&op, 1}, OutputForm::Object, {.cpu = cpu}, diagnostics);
      if (!object || !runs[level - 2]) continue;
      auto code = engine().add_object(*object, name_, diagnostics);
      if (code) compiled_.push_back({cpu, std::move(*code)});
    }
  }
  problems_ += ops::messages(diagnostics);
}

std::optional<std::vector<Buffer>> KernelPair::interpret(const Launch& launch,
                                                         std::string& problem) const {
  const Storage storage(launch);
  std::vector<InterpArgument> arguments;
  size_t number = 0;
  for (const auto& argument : launch.arguments) {
    if (const auto* const value = std::get_if<ScalarValue>(&argument)) {
      arguments.emplace_back(scalar_argument(*value));
    } else {
      arguments.emplace_back(InterpStorage{"b", storage[number++]});
    }
  }
  std::vector<ScalarValue> workload;
  workload.reserve(launch.workload.size());
  for (const uint64_t size : launch.workload) {
    workload.push_back(from_bits(ScalarKind::Index, size));
  }
  Diagnostics diagnostics;
  const bool good = run_kernel(*module_, name_, workload, arguments, options(), diagnostics);
  problem = ops::messages(diagnostics);
  if (!good) return std::nullopt;
  return storage.take(launch);
}

std::vector<Buffer> KernelPair::compute(const Launch& launch, const JitKernel& code,
                                        const LoomDispatchShape& shape) const {
  const Storage storage(launch);
  std::vector<uint64_t> slots;
  size_t number = 0;
  for (const auto& argument : launch.arguments) {
    const auto* const value = std::get_if<ScalarValue>(&argument);
    slots.push_back(value != nullptr ? value->bits
                                     : std::bit_cast<uint64_t>(storage[number++].data()));
  }
  code.entry()(slots.data(), &shape, 0, uint64_t{shape.count[0]} * shape.count[1] * shape.count[2]);
  return storage.take(launch);
}

std::optional<LoomDispatchShape> KernelPair::shape_of(const Launch& launch,
                                                      std::string& problem) const {
  std::vector<InterpArgument> workload;
  workload.reserve(launch.workload.size());
  for (const uint64_t size : launch.workload) {
    workload.emplace_back(scalar_argument(from_bits(ScalarKind::Index, size)));
  }
  Diagnostics diagnostics;
  const auto results = run_function(*configuration_, name_, workload, options(), diagnostics);
  problem = ops::messages(diagnostics);
  if (!results) return std::nullopt;
  LoomDispatchShape shape{};
  for (size_t i = 0; i < 6; ++i) {
    (i < 3 ? shape.count : shape.size)[i % 3] = static_cast<uint32_t>((*results)[i].at(0).bits);
  }
  return shape;
}

std::vector<Buffer> KernelPair::compute(const Launch& launch) const {
  std::string problem;
  const auto shape = shape_of(launch, problem);
  EXPECT_TRUE(shape.has_value()) << problem;
  return shape ? compute(launch, compiled_[1].code, *shape) : std::vector<Buffer>();
}

void KernelPair::expect_same(const Launch& launch) const {
  SCOPED_TRACE(describe(launch));
  std::string problem;
  const auto expected = interpret(launch, problem);
  ASSERT_TRUE(expected.has_value()) << problem;
  expect_oracle(launch, *expected);
  const auto shape = shape_of(launch, problem);
  ASSERT_TRUE(shape.has_value()) << problem;
  for (const Compiled& one : compiled_) {
    SCOPED_TRACE(one.name);
    expect_close(launch, *expected, compute(launch, one.code, *shape));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace loom::lib
