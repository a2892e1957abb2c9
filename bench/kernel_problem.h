#pragma once

// What suite `kernels` computes: inputs, the place of the output, and whether it is right. Every
// C++ side uses the same problems, so that all of them read and write memory laid out alike.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loom::bench {

// Zeroed memory that begins at a page, in huge pages where the system has them.
class Memory {
 public:
  explicit Memory(size_t bytes);
  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

float from_bf16(uint16_t bits);
uint16_t to_bf16(float value);

// One problem, named "KIND:SIZE:SIZE:SIZE"; what the kinds compute is in kernel_problem.cpp.
class Problem {
 public:
  // Ends the process where there is no such kind.
  explicit Problem(std::string_view name);

  const std::string& name() const { return name_; }
  const std::string& kind() const { return kind_; }
  size_t size(size_t place) const { return sizes_[place]; }
  const Memory& input(size_t number) const { return inputs_[number]; }
  size_t input_count() const { return inputs_.size(); }
  const Memory& output() const { return *output_; }
  float* in(size_t number) const { return inputs_[number].as<float>(); }
  float* out() const { return output_->as<float>(); }

  // Puts into the output what no kernel leaves there.
  void spoil() const;
  // Compares places of the output with what they must be, computed here in double. Empty, or what
  // is wrong.
  std::string wrong() const;

  static constexpr float kEpsilon = 1e-5f;  // of the norms

 private:
  std::string name_;
  std::string kind_;
  std::array<size_t, 4> sizes_ = {1, 1, 1, 1};
  std::vector<Memory> inputs_;
  std::unique_ptr<Memory> output_;
};

}  // namespace loom::bench
