// Asynchronous copies between global and workgroup memory.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr std::string_view kHow = "cache_scope = device, cache_temporal = regular, direction = ";

// Each of four workitems brings a tile into workgroup memory, and takes a neighbour's one out.
Case copies(bool masked, std::string_view source, std::string_view tile, std::string_view slot) {
  const std::string mask = masked ? ", %odd" : "";
  const std::string name = masked ? "kernel.async.copy.mask" : "kernel.async.copy";
  const std::string type = masked ? ", i1" : "";
  const std::string body = fmt::format(
      R"(  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %two = index.constant 2 : index
  %three = index.constant 3 : index
  %bytes = index.constant 512 : offset
  %shared = buffer.alloca<workgroup> align(16) %bytes : buffer
  %item = kernel.workitem.id<x> : index
  %rest = index.rem %i, %two : index
  %odd = index.cmp eq, %rest, %one : index
  %w0 = buffer.view %b0[%base] : buffer -> view<8x{source}>
  %w1 = buffer.view %b1[%base] : buffer -> view<8x{source}>
  %ws = buffer.view %shared[%base] : buffer -> view<4x{slot}>
  %from = view.subview %w0[%i, {zeros_source}] : view<8x{source}> -> view<1x{tile}>
  %into = view.subview %ws[%item, {zeros_slot}] : view<4x{slot}> -> view<1x{slot}>
  %empty = vector.constant 7 : vector<1x{slot}>
  vector.store %empty, %into[0, {zeros_slot}] : vector<1x{slot}>, view<1x{slot}>
  %t = {name} %from to %into{mask} {{{how}global_to_workgroup}} : view<1x{tile}> to view<1x{slot}>{type} -> kernel.async.token
  %g = kernel.async.group %t : kernel.async.token -> kernel.async.group
  kernel.async.wait %g {{newer_groups = 0}} : kernel.async.group
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %other = index.sub %three, %item : index
  %taken = view.subview %ws[%other, {zeros_slot}] : view<4x{slot}> -> view<1x{slot}>
  %to = view.subview %w1[%i, {zeros_source}] : view<8x{source}> -> view<1x{tile}>
  %u = kernel.async.copy %taken to %to {{{how}workgroup_to_global}} : view<1x{slot}> to view<1x{tile}> -> kernel.async.token
  %h = kernel.async.group %u : kernel.async.token -> kernel.async.group
  %nothing = kernel.async.group -> kernel.async.group
  kernel.async.wait %h {{newer_groups = 0}} : kernel.async.group
  kernel.async.wait %nothing {{newer_groups = 0}} : kernel.async.group
)",
      fmt::arg("source", source), fmt::arg("tile", tile), fmt::arg("slot", slot),
      fmt::arg("zeros_source", source.find('x') == source.rfind('x') ? "0" : "0, 0"),
      fmt::arg("zeros_slot", slot.find('x') == slot.rfind('x') ? "0" : "0, 0"),
      fmt::arg("how", kHow), fmt::arg("name", name), fmt::arg("mask", mask),
      fmt::arg("type", type));
  constexpr LoomDispatchShape kShape = {{2, 1, 1}, {4, 1, 1}};
  return {fmt::format("{} of {} from {} into {}", name, tile, source, slot),
          kernel_text(2, body, kShape),
          {noise(ScalarKind::I32, 512, 1), zeros(ScalarKind::I32, 512)},
          kShape,
          {}};
}

// Where subgroups have one lane, each one's lane 0 fills its own slot.
Case gathers(bool masked) {
  const std::string name = masked ? "kernel.async.gather.mask" : "kernel.async.gather";
  const std::string body = fmt::format(
      R"(  %one = index.constant 1 : index
  %two = index.constant 2 : index
  %bytes = index.constant 512 : offset
  %shared = buffer.alloca<workgroup> align(16) %bytes : buffer
  %item = kernel.workitem.id<x> : index
  %rest = index.rem %i, %two : index
  %odd = index.cmp eq, %rest, %one : index
  %w0 = buffer.view %b0[%base] : buffer -> view<4x6xi16>
  %w1 = buffer.view %b1[%base] : buffer -> view<4x6xi16>
  %ws = buffer.view %shared[%base] : buffer -> view<4x8xi16>
  %from = view.subview %w0[%i, 0] : view<4x6xi16> -> view<1x6xi16>
  %into = view.subview %ws[%item, 0] : view<4x8xi16> -> view<1x8xi16>
  %empty = vector.constant -3 : vector<1x8xi16>
  vector.store %empty, %into[0, 0] : vector<1x8xi16>, view<1x8xi16>
  %t = {} %from to %into{} {{{}global_to_workgroup}} : view<1x6xi16> to view<1x8xi16>{} -> kernel.async.token
  %g = kernel.async.group %t : kernel.async.token -> kernel.async.group
  kernel.async.wait %g {{newer_groups = 0}} : kernel.async.group
  %out = vector.load %into[0, 0] : view<1x8xi16> -> vector<6xi16>
  vector.store %out, %w1[%i, 0] : vector<6xi16>, view<4x6xi16>
)",
      name, masked ? ", %odd" : "", kHow, masked ? ", i1" : "");
  constexpr LoomDispatchShape kShape = {{2, 1, 1}, {2, 1, 1}};
  return {name,
          kernel_text(2, body, kShape),
          {noise(ScalarKind::I16, 24, 1), zeros(ScalarKind::I16, 24)},
          kShape,
          {}};
}

}  // namespace

std::vector<Case> transfer_cases() {
  return {copies(false, "12xi32", "12xi32", "12xi32"),
          copies(true, "12xi32", "12xi32", "12xi32"),
          copies(false, "9x5xi32", "3x4xi32", "6x2xi32"),
          copies(true, "16xi32", "8xi32", "2x4xi32"),
          gathers(false),
          gathers(true)};
}

}  // namespace loom::ops
