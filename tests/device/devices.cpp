#include "devices.h"

namespace loom::device {

const std::vector<DeviceUnderTest>& devices() {
  static const std::vector<DeviceUnderTest> all = {
      {"cpu", [](unsigned threads) { return api::Device::cpu(threads); }},
  };
  return all;
}

void upload(const api::Storage& to, std::span<const std::byte> bytes) {
  ASSERT_LE(bytes.size(), to.bytes().size());
  if (!bytes.empty()) std::memcpy(to.bytes().data(), bytes.data(), bytes.size());
}

std::vector<std::byte> download(const api::Storage& from, size_t bytes) {
  const auto all = std::span<const std::byte>(from.bytes()).first(bytes);
  return {all.begin(), all.end()};
}

std::string device_name(const ::testing::TestParamInfo<DeviceUnderTest>& info) {
  return info.param.name;
}

void Fixture::build(const std::string& source, unsigned threads) {
  device_ = GetParam().make(threads);
  api::Modules inputs(context_);
  ASSERT_TRUE(inputs.add(kKernels + source, "suite.loom", messages_)) << messages_.text();
  auto linked = api::link(inputs, {}, {}, messages_);
  ASSERT_TRUE(linked) << messages_.text();
  const auto plan = api::prepare(std::move(*linked), {.roots = {"run"}}, messages_);
  ASSERT_TRUE(plan) << messages_.text();
  const auto code = api::compile(*plan, {.tier = api::Tier::Fast}, messages_);
  ASSERT_TRUE(code) << messages_.text();
  program_ = api::materialize(*device_, *plan, 0, *code, {}, messages_);
  ASSERT_TRUE(program_) << messages_.text();
  codes();
}

std::vector<std::string> Fixture::codes() {
  std::vector<std::string> found;
  for (const api::Message& message : messages_.all()) found.push_back(message.code);
  messages_ = api::Messages(context_);
  return found;
}

const std::string kKernels = R"(
// Adds one to each of n numbers, a workgroup each.
kernel.def export("increment") @increment(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%from: buffer, %to: buffer) {
  %base = index.constant 0 : offset
  %i = kernel.workgroup.id<x> : index
  %count = kernel.workgroup.count<x> : index
  %in = buffer.view %from[%base] : buffer -> view<[%count]xi32>
  %out = buffer.view %to[%base] : buffer -> view<[%count]xi32>
  %v = view.load %in[%i] : view<[%count]xi32> -> i32
  %one = scalar.constant 1 : i32
  %r = scalar.addi %v, %one : i32
  view.store %r, %out[%i] : i32, view<[%count]xi32>
  kernel.return
}

// Says of each workitem where it is: 1000 * group + 100 * z + 10 * y + x of the item, by its number.
kernel.def export("place") @place(%x: index, %y: index, %z: index) {
  %two = index.constant 2 : index
  %three = index.constant 3 : index
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%x, %y, %z) workgroup_size(%three, %two, %one) : index
} launch(%to: buffer) {
  %base = index.constant 0 : offset
  %gx = kernel.workgroup.id<x> : index
  %gy = kernel.workgroup.id<y> : index
  %gz = kernel.workgroup.id<z> : index
  %cx = kernel.workgroup.count<x> : index
  %cy = kernel.workgroup.count<y> : index
  %cz = kernel.workgroup.count<z> : index
  %ix = kernel.workitem.id<x> : index
  %iy = kernel.workitem.id<y> : index
  %iz = kernel.workitem.id<z> : index
  %rows = index.madd %gz, %cy, %gy : index
  %group = index.madd %rows, %cx, %gx : index
  %plane = index.mul %cx, %cy : index
  %groups = index.mul %plane, %cz : index
  %six = index.constant 6 : index
  %three = index.constant 3 : index
  %row = index.madd %iy, %three, %ix : index
  %at = index.madd %group, %six, %row : index
  %all = index.mul %groups, %six : index
  %out = buffer.view %to[%base] : buffer -> view<[%all]xi32>
  %thousand = index.constant 1000 : index
  %hundred = index.constant 100 : index
  %ten = index.constant 10 : index
  %a = index.mul %group, %thousand : index
  %b = index.madd %iz, %hundred, %a : index
  %c = index.madd %iy, %ten, %b : index
  %d = index.add %c, %ix : index
  %value = index.cast %d : index to i32
  view.store %value, %out[%at] : i32, view<[%all]xi32>
  kernel.return
}

// Counts the workgroups that ran, by an atomic addition.
kernel.def export("count") @count(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%to: buffer) {
  %base = index.constant 0 : offset
  %out = buffer.view %to[%base] : buffer -> view<1xi32>
  %one = scalar.constant 1 : i32
  view.atomic.reduce<addi> %one, %out[0] {ordering = relaxed, scope = device} : i32, view<1xi32>
  kernel.return
}

// Turns 64 numbers around through workgroup memory, and adds the sum of all.
kernel.def export("reverse") @reverse(%n: index) {
  %one = index.constant 1 : index
  %size = index.constant 64 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%size, %one, %one) : index
} launch(%data: buffer) {
  %base = index.constant 0 : offset
  %bytes = index.constant 256 : offset
  %shared = buffer.alloca<workgroup> align(16) %bytes : buffer
  %s = buffer.view %shared[%base] : buffer -> view<64xi32>
  %count = kernel.workgroup.count<x> : index
  %g = kernel.workgroup.id<x> : index
  %i = kernel.workitem.id<x> : index
  %d = buffer.view %data[%base] : buffer -> view<[%count]x64xi32>
  %v = view.load %d[%g, %i] : view<[%count]x64xi32> -> i32
  view.store %v, %s[%i] : i32, view<64xi32>
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %last = index.constant 63 : index
  %other = index.sub %last, %i : index
  %w = view.load %s[%other] : view<64xi32> -> i32
  %sum = kernel.workgroup.reduce<addi> %v : i32
  %r = scalar.addi %w, %sum : i32
  view.store %r, %d[%g, %i] : i32, view<[%count]x64xi32>
  kernel.return
}

// Doubles numbers that are not negative, and checks that they are not.
kernel.def export("checked") @checked(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%data: buffer) {
  %base = index.constant 0 : offset
  %i = kernel.workgroup.id<x> : index
  %count = kernel.workgroup.count<x> : index
  %d = buffer.view %data[%base] : buffer -> view<[%count]xi32>
  sanitizer.assert.access<read_write> %d[%i] {static_extents = [1]} : view<[%count]xi32>
  %v = view.load %d[%i] : view<[%count]xi32> -> i32
  %good = sanitizer.assert.value %v [ge(%v, 0)] : i32
  %r = scalar.addi %good, %good : i32
  view.store %r, %d[%i] : i32, view<[%count]xi32>
  kernel.return
}
)";

}  // namespace loom::device
