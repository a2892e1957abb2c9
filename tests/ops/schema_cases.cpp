// Encodings as values, and a payload that goes both ways.
#include <span>

#include "cases.h"

namespace loom::ops {
namespace {

// Which encodings are told apart, and one payload that goes both ways.
Case schemas(std::string_view define, std::string_view spec, std::string_view type) {
  const std::string body = fmt::format(R"(  %w0 = buffer.view %b0[%base] : buffer -> view<16xi8>
  %w1 = buffer.view %b1[%base] : buffer -> view<16xi8>
  %w2 = buffer.view %b2[%base] : buffer -> view<1xi1>
  %two = index.constant 2 : index
  %wn = buffer.view %b3[%base] : buffer -> view<3xindex>
  %n1 = view.load %wn[1] : view<3xindex> -> index
  %n2 = view.load %wn[2] : view<3xindex> -> index
  %n4 = index.mul %n2, %n2 : index
  %e = {}
  %is = encoding.isa<{}> %e : {}
  view.store %is, %w2[0] : i1, view<1xi1>
  %schema = encoding.define #encoding.f8e5m2<payload_elements=16> : encoding<schema>
  %p = vector.load %w0[0] : view<16xi8> -> vector<16xi8>
  %v = vector.decode %p using %schema : vector<16xi8>, encoding<schema> -> vector<16xf16>
  %q = vector.encode %v using %schema : vector<16xf16>, encoding<schema> -> vector<16xi8>
  vector.store %q, %w1[0] : vector<16xi8>, view<16xi8>
)",
                                       define, spec, type);
  return {fmt::format("whether {} is {}", define, spec),
          kernel_text(4, body),
          {noise(ScalarKind::F8E5M2, 16, 1), zeros(ScalarKind::F8E5M2, 16),
           zeros(ScalarKind::I1, 1), buffer_of<int64_t>(ScalarKind::Index, {0, 1, 2})},
          {{1, 1, 1}, {1, 1, 1}},
          {}};
}

}  // namespace

std::vector<Case> schema_cases() {
  std::vector<Case> cases;
  const std::pair<std::string_view, std::string_view> encodings[] = {
      {"encoding.layout.dense : encoding<layout>", "encoding<layout>"},
      {"encoding.layout.strided [4, %two] : encoding<layout>", "encoding<layout>"},
      {"encoding.layout.strided [4, %n2] : encoding<layout>", "encoding<layout>"},
      {"encoding.layout.strided [%n4, %n1] : encoding<layout>", "encoding<layout>"},
      {"encoding.layout.strided [%n1] : encoding<layout>", "encoding<layout>"},
      {"encoding.define #ggml.q8_0 : encoding<storage>", "encoding<storage>"}};
  for (const auto& [define, type] : encodings) {
    const std::string_view layouts[] = {"#encoding.layout.dense",
                                        "#encoding.layout.strided<strides=[4, 2]>",
                                        "#encoding.layout.strided<strides=[4, 1]>"};
    const std::string_view storages[] = {"#ggml.q8_0", "#ggml.q4_0"};
    for (const std::string_view spec : type == "encoding<layout>"
                                           ? std::span<const std::string_view>(layouts)
                                           : std::span<const std::string_view>(storages)) {
      cases.push_back(schemas(define, spec, type));
    }
  }
  return cases;
}

}  // namespace loom::ops
