// One kernel of lib/ on the interpreter and, compiled in several ways, on x86-64.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "../ops/both.h"
#include "loom/interp/interp.h"
#include "loom/link/link.h"

namespace loom::lib {

using ops::Buffer;

// What a kernel is launched with, and how exactly its results are known.
struct Launch {
  std::vector<uint64_t> workload;
  std::vector<std::variant<ScalarValue, Buffer>> arguments;
  // The argument that the rest is about, element by element from its first: by how much the two
  // sides may differ (none where they must have equal bits), and what a computation in double has,
  // from which a side may differ as much.
  size_t output = 0;
  std::vector<double> slack = {};
  std::vector<double> oracle = {};
  // How many bytes behind an address of 64 the storage of buffers begins.
  size_t shift = 0;

  Launch& index(uint64_t value) {
    arguments.emplace_back(from_bits(ScalarKind::Index, value));
    return *this;
  }
  Launch& number(double value) {
    arguments.emplace_back(from_double(ScalarKind::F32, value));
    return *this;
  }
  Launch& buffer(Buffer value) {
    arguments.emplace_back(std::move(value));
    return *this;
  }
  // A buffer that is written: noise, and more of it behind its end.
  Launch& result(ScalarKind element, size_t count) {
    output = arguments.size();
    return buffer(ops::noise(element, count + 70, count));
  }
};

ScalarValue element_of(const Buffer& buffer, size_t i);

// All files of lib/, and which kernels they define.
class Library {
 public:
  Library();
  struct Export {
    std::string file;
    std::string kernel;
  };
  const std::vector<Export>& exports() const { return exports_; }
  // The kernel with what it uses; nothing, with `problems`, where it cannot be linked.
  std::optional<Module> link(const Export& kernel);
  std::string problems;

 private:
  std::optional<LinkInput> load(const std::string& file);

  SourceFiles files_;
  std::vector<Export> exports_;
  std::vector<std::string> parts_;  // files that define no kernel
  std::optional<LibraryIndex> index_;
};

class KernelPair {
 public:
  // `every_cpu`: for older processors, too. The library outlives it.
  KernelPair(Library& library, const Library::Export& kernel, bool every_cpu);
  bool good() const { return problems_.empty(); }
  const std::string& problems() const { return problems_; }
  // Expects the same of all sides.
  void expect_same(const Launch& launch) const;
  // What the optimized code leaves in the buffers; none, with a failure, where it has no geometry.
  std::vector<Buffer> compute(const Launch& launch) const;

 private:
  struct Compiled {
    std::string name;
    JitKernel code;
  };
  void compile(Module& module, bool every_cpu);
  std::optional<std::vector<Buffer>> interpret(const Launch& launch, std::string& problem) const;
  std::vector<Buffer> compute(const Launch& launch, const JitKernel& code,
                              const LoomDispatchShape& shape) const;
  std::optional<LoomDispatchShape> shape_of(const Launch& launch, std::string& problem) const;

  std::string name_;
  std::string problems_;
  std::optional<Module> module_;         // as it is written
  std::optional<Module> configuration_;  // its launch configuration
  std::vector<Compiled> compiled_;
};

}  // namespace loom::lib
