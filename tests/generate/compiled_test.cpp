// Random programs compute on x86-64 what the reference interpreter says.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "generator.h"
#include "loom/dialect/verify.h"
#include "loom/interp/interp.h"
#include "loom/target/x86/compile.h"
#include "loom/target/x86/jit.h"
#include "loom/target/x86/kernel_abi.h"
#include "loom/text/printer.h"
#include "program_count.h"
#include "random_arguments.h"

namespace loom::generate {
namespace {

using enum OpKind;

// A kernel that loads a function's arguments from one buffer each, calls it, and stores its results
// to one buffer each.
class Wrapper {
 public:
  Wrapper(Module& module, OpId function) : module_(module), function_(function) {}

  OpId build(const std::string& name) {
    const OpId kernel = create({.kind = KernelDef, .regions = 2},
                               {{"name", Attr::symbol(module_.strings.intern(name))}});
    module_.append(module_.body(), kernel);
    module_.define_symbol(module_.strings.intern(name), kernel);
    const RegionId config = module_.op_region(kernel, 0);
    body_ = module_.op_region(kernel, 1);
    module_.region(config).has_body = module_.region(body_).has_body = true;
    const std::vector<ValueId> ones(6, index(config, ScalarKind::Index, 1));
    const std::vector<uint32_t> groups = {3, 3, 0};
    append(config, {.kind = KernelLaunchConfig, .operands = ones, .groups = groups});
    fill();
    return kernel;
  }

 private:
  using Attrs = std::vector<std::pair<std::string_view, Attr>>;

  OpId create(Module::NewOp op, const Attrs& attrs) {
    const OpInfo& info = op_info(op.kind);
    std::vector<AttrId> ids(info.attrs.size());
    for (const auto& [name, attr] : attrs) {
      for (size_t i = 0; i < ids.size(); ++i) {
        if (info.attrs[i].name == name) ids[i] = module_.attrs.intern(attr);
      }
    }
    op.attrs = ids;
    return module_.create(op);
  }
  OpId append(RegionId region, Module::NewOp op, const Attrs& attrs = {}) {
    const OpId made = create(op, attrs);
    module_.append(region, made);
    return made;
  }
  ValueId index(RegionId region, ScalarKind kind, int64_t value) {
    const TypeId type = TypeStore::scalar(kind);
    return module_.result(append(region, {.kind = IndexConstant, .results = std::span(&type, 1)},
                                 {{"value", Attr::integer(value)}}));
  }

  // A view of as many elements as the type has, with the type's own axes.
  ValueId view(ValueId buffer, TypeId of) {
    const Type& type = module_.types[of];
    std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    if (dims.empty()) dims.push_back(Dim::fixed(1));
    const TypeId made =
        module_.types.intern({.kind = TypeKind::View, .element = type.element, .dims = dims});
    const ValueId operands[] = {buffer, index(body_, ScalarKind::Offset, 0)};
    return module_.result(
        append(body_, {.kind = BufferView, .operands = operands, .results = std::span(&made, 1)}));
  }
  Attrs origin(TypeId type) const {
    static constexpr int64_t kZeros[8] = {};
    const size_t rank = std::max<size_t>(1, module_.types[type].rank());
    return {{"static_index", Attr::int_list(std::span(kZeros).first(rank))}};
  }
  ValueId load(ValueId buffer, TypeId type) {
    const ValueId operands[] = {view(buffer, type)};
    const std::vector<uint32_t> groups = {1, 0};
    const OpKind kind = module_.types.is_scalar(type) ? ViewLoad : VectorLoad;
    return module_.result(append(
        body_,
        {.kind = kind, .operands = operands, .groups = groups, .results = std::span(&type, 1)},
        origin(type)));
  }
  void store(ValueId value, ValueId buffer) {
    const TypeId type = module_.type_of(value);
    const ValueId operands[] = {value, view(buffer, type)};
    const std::vector<uint32_t> groups = {1, 1, 0};
    const OpKind kind = module_.types.is_scalar(type) ? ViewStore : VectorStore;
    append(body_, {.kind = kind, .operands = operands, .groups = groups}, origin(type));
  }
  std::vector<ValueId> buffers(size_t count) {
    std::vector<ValueId> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(module_.add_arg(body_, module_.types.opaque(TypeKind::Buffer), StringId()));
    }
    return made;
  }
  std::vector<TypeId> types_of(RegionId region) const {
    std::vector<TypeId> types;
    for (const ValueId arg : module_.args(region)) types.push_back(module_.type_of(arg));
    return types;
  }

  void fill() {
    const auto arguments = types_of(module_.op_region(function_, 0));
    const auto results = types_of(module_.op_region(function_, 1));
    const auto from = buffers(arguments.size());
    const auto to = buffers(results.size());
    module_.region(body_).arg_split = module_.region(body_).arg_count;
    std::vector<ValueId> loaded;
    for (size_t i = 0; i < arguments.size(); ++i) loaded.push_back(load(from[i], arguments[i]));
    const std::vector<uint32_t> groups = {static_cast<uint32_t>(loaded.size())};
    const OpId call =
        append(body_, {.kind = FuncCall, .operands = loaded, .groups = groups, .results = results},
               {{"callee", Attr::symbol(module_.strings.intern(symbol_text(module_, function_)))}});
    for (size_t i = 0; i < results.size(); ++i) {
      store(module_.result(call, static_cast<unsigned>(i)), to[i]);
    }
    append(body_, {.kind = KernelReturn});
  }

  Module& module_;
  OpId function_;
  RegionId body_;
};

std::vector<std::byte> bytes_of(const LaneValues& value) {
  const size_t width = scalar_bytes(value.element);
  std::vector<std::byte> bytes(value.lanes.size() * width + 64);
  for (size_t i = 0; i < value.lanes.size(); ++i) {
    std::memcpy(bytes.data() + i * width, &value.lanes[i], width);
  }
  return bytes;
}

std::string messages(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) text += diag_code(d.id) + " " + d.message() + "\n";
  return text;
}

void expect_same(const LaneValues& expected, const std::vector<std::byte>& actual, size_t number) {
  const size_t width = scalar_bytes(expected.element);
  for (size_t lane = 0; lane < expected.lanes.size(); ++lane) {
    ScalarValue got{expected.element, 0};
    std::memcpy(&got.bits, actual.data() + lane * width, width);
    if (is_float(expected.element) && is_nan(expected.at(lane)) && is_nan(got)) continue;
    ASSERT_EQ(expected.lanes[lane], got.bits) << "result " << number << ", lane " << lane;
  }
}

// Code for one processor by one tier.
struct CompileWay {
  std::string cpu;
  JitTier tier;
};

// Mostly for this machine and fast, as most code is made.
CompileWay random_way(std::mt19937_64& random) {
  static constexpr const char* kCpus[] = {"native",    "native",    "native",   "x86-64",
                                          "x86-64-v2", "x86-64-v3", "x86-64-v4"};
  return {kCpus[random() % std::size(kCpus)],
          random() % 4 == 0 ? JitTier::Optimized : JitTier::Fast};
}

bool runs_here(const std::string& cpu) {
  if (cpu == "x86-64-v4") return __builtin_cpu_supports("x86-64-v4");
  return cpu != "x86-64-v3" || __builtin_cpu_supports("x86-64-v3");
}

std::optional<JitKernel> compile(JitEngine& engine, const Module& module, OpId kernel,
                                 const CompileWay& way, Diagnostics& diagnostics) {
  if (way.cpu == "native") return engine.add(module, kernel, {.tier = way.tier}, diagnostics);
  const X86Options options{.cpu = way.cpu, .opt_level = way.tier == JitTier::Fast ? 0 : 2};
  const auto object =
      compile_x86(module, std::span(&kernel, 1), OutputForm::Object, options, diagnostics);
  if (!object) return std::nullopt;
  return engine.add_object(*object, symbol_text(module, kernel), diagnostics);
}

// Those whose results depend on how an elementary function is computed, too.
TEST(Compiled, EveryPureOperationIsTaken) {
  Diagnostics diagnostics;
  const auto engine = JitEngine::create(diagnostics);
  ASSERT_NE(engine, nullptr) << messages(diagnostics);
  std::set<OpKind> taken;
  for (const uint64_t seed : program_seeds(1500)) {
    SourceFiles files;
    Module module(files);
    Generator generator(module, seed, {});
    generator.run();
    if (std::ranges::includes(taken, generator.used())) continue;
    for (const std::string_view number : {"0", "1", "2"}) {
      const OpId function = module.symbol("f" + std::string(number));
      const OpId kernel = Wrapper(module, function).build("k" + std::string(number));
      Diagnostics problems;
      ASSERT_TRUE(engine->add(module, kernel, {.tier = JitTier::Fast}, problems).has_value())
          << messages(problems) << print_text(module);
    }
    taken.insert(generator.used().begin(), generator.used().end());
  }
  if (program_count(1500) < 1500) return;  // too few for every operation
  for (const OpKind kind : kAllOpKinds) {
    EXPECT_TRUE(taken.contains(kind) || !Generator::covers(kind)) << op_info(kind).name;
  }
}

TEST(Compiled, X86ComputesWhatTheInterpreterSays) {
  Diagnostics diagnostics;
  const auto engine = JitEngine::create(diagnostics);
  ASSERT_NE(engine, nullptr) << messages(diagnostics);
  size_t compared = 0;
  for (const uint64_t seed : program_seeds(100)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SourceFiles files;
    Module module(files);
    Generator(module, seed, {.operations = 20, .exact_only = true}).run();
    std::mt19937_64 random(seed);
    for (size_t f = 0; f < 3; ++f) {
      const std::string name = "f" + std::to_string(f);
      const OpId function = module.symbol(name);
      const OpId kernel = Wrapper(module, function).build("k" + std::to_string(f));
      Diagnostics problems;
      ASSERT_TRUE(verify_module(module, problems)) << messages(problems) << print_text(module);
      const CompileWay way = random_way(random);
      SCOPED_TRACE(name + " for " + way.cpu + (way.tier == JitTier::Fast ? ", fast" : ""));
      const auto code = compile(*engine, module, kernel, way, problems);
      ASSERT_TRUE(code.has_value()) << messages(problems) << print_text(module);
      if (!runs_here(way.cpu)) continue;
      for (size_t run = 0; run < 4; ++run) {
        const auto arguments = random_arguments(module, function, random);
        Diagnostics ignored;
        const auto expected =
            run_function(module, name, arguments, {.step_limit = 200'000}, ignored);
        if (!expected) continue;  // the program has no defined result
        std::vector<std::vector<std::byte>> storage;
        for (const InterpArgument& argument : arguments) {
          storage.push_back(bytes_of(std::get<LaneValues>(argument)));
        }
        for (const LaneValues& result : *expected) storage.push_back(bytes_of(result));
        for (size_t i = arguments.size(); i < storage.size(); ++i) {
          std::ranges::fill(storage[i], std::byte{0xa5});
        }
        std::vector<uint64_t> slots;
        for (const auto& one : storage) slots.push_back(std::bit_cast<uint64_t>(one.data()));
        const LoomDispatchShape shape{{1, 1, 1}, {1, 1, 1}};
        code->entry()(slots.data(), &shape, 0, 1);
        for (size_t i = 0; i < expected->size(); ++i) {
          expect_same((*expected)[i], storage[arguments.size() + i], i);
          if (HasFatalFailure()) FAIL() << print_text(module);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, program_count(100));
}

}  // namespace
}  // namespace loom::generate
