// The devices that the suite runs on, and how a test reaches their memory.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loom/api/loom.h"

namespace loom::device {

// A further device is one more row of devices() in devices.cpp, and a case in `upload` and
// `download` where its memory is not the host's.
struct DeviceUnderTest {
  std::string name;  // as --device spells it
  api::Device (*make)(unsigned threads);
};
const std::vector<DeviceUnderTest>& devices();

void upload(const api::Storage& to, std::span<const std::byte> bytes);
template <class T>
void upload_values(const api::Storage& to, const std::vector<T>& values) {
  upload(to, std::as_bytes(std::span(values)));
}
std::vector<std::byte> download(const api::Storage& from, size_t bytes);

template <class T>
api::Storage made_of(const api::Device& device, const std::vector<T>& values) {
  api::Storage storage = api::Storage::allocate(device, values.size() * sizeof(T));
  upload_values(storage, values);
  return storage;
}
template <class T>
std::vector<T> values_in(const api::Storage& storage, size_t count) {
  std::vector<T> values(count);
  const std::vector<std::byte> bytes = download(storage, count * sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// One program on one device, from its source.
class Fixture : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  // Compiles the program @run of that source. `threads` is what the device may use, 0 all.
  void build(const std::string& source, unsigned threads = 0);
  api::Invocation invocation() const { return api::Invocation(*program_); }
  api::Storage storage(size_t bytes) const { return api::Storage::allocate(*device_, bytes); }
  template <class T>
  api::Storage storage_of(const std::vector<T>& values) const {
    return made_of(*device_, values);
  }
  // The codes of what was reported since the last call.
  std::vector<std::string> codes();

  api::Context context_;
  api::Messages messages_{context_};
  std::optional<api::Device> device_;
  std::optional<api::Program> program_;
};

// Kernels that the programs of the suite are made of.
extern const std::string kKernels;

std::string device_name(const ::testing::TestParamInfo<DeviceUnderTest>& info);

}  // namespace loom::device

#define LOOM_ON_EVERY_DEVICE(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, ::testing::ValuesIn(::loom::device::devices()), \
                           ::loom::device::device_name)
