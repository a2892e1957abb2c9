// Atomic accesses of single elements and of vectors.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr LoomDispatchShape kThreeOfFour = {{3, 1, 1}, {4, 1, 1}};
constexpr size_t kItems = 12;

struct Kinds {
  std::string_view element;
  std::vector<std::string_view> kinds;
};
const std::vector<Kinds>& kinds() {
  static const std::vector<std::string_view> integers = {
      "xchgi", "addi", "subi", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui"};
  static const std::vector<std::string_view> floats = {"xchgf",    "addf",    "minimumf",
                                                       "maximumf", "minnumf", "maxnumf"};
  static const std::vector<Kinds> all = {{"i8", integers},  {"i16", integers}, {"i32", integers},
                                         {"i64", integers}, {"f32", floats},   {"f64", floats},
                                         {"f16", floats},   {"bf16", floats},  {"f8E4M3", floats},
                                         {"f8E5M2", floats}};
  return all;
}

Buffer values_of(std::string_view element, size_t count, uint64_t seed) {
  const ScalarKind kind = *scalar_from_name(element);
  return is_float(kind) ? special_floats(kind, count, seed) : noise(kind, count, seed);
}

bool is_exchange(std::string_view kind) { return kind.starts_with("xchg"); }

// Every workitem combines its value into one of four elements, and keeps what was there.
void add_view_cases(std::vector<Case>& cases, std::string_view element, std::string_view kind,
                    std::string_view ordering) {
  const std::string flags =
      kind == "addf" && ordering == "relaxed" ? "addf, noftz" : std::string(kind);
  const std::string reduce =
      is_exchange(kind)
          ? ""
          : fmt::format(
                "  view.atomic.reduce<{}> %v, %w1[%place] {{ordering = {}, scope = device}} : "
                "{}, view<4x{}>\n",
                flags, ordering, element, element);
  const std::string body = fmt::format(
      R"(  %four = index.constant 4 : index
  %place = index.rem %i, %four : index
  %w0 = buffer.view %b0[%base] : buffer -> view<12x{0}>
  %w1 = buffer.view %b1[%base] : buffer -> view<4x{0}>
  %w2 = buffer.view %b2[%base] : buffer -> view<12x{0}>
  %v = view.load %w0[%i] : view<12x{0}> -> {0}
{2}  %old = view.atomic.rmw<{1}> %v, %w1[%place] {{ordering = {3}, scope = device}} : {0}, view<4x{0}> -> {0}
  view.store %old, %w2[%i] : {0}, view<12x{0}>
)",
      element, flags, reduce, ordering);
  cases.push_back({fmt::format("view {} of {}", flags, element),
                   kernel_text(3, body, kThreeOfFour),
                   {values_of(element, kItems, 1), values_of(element, 4, 2),
                    zeros(*scalar_from_name(element), kItems)},
                   kThreeOfFour,
                   {}});
}

// Lanes of a vector combine into elements that several of them name; the last lane is masked.
void add_vector_cases(std::vector<Case>& cases, std::string_view element, std::string_view kind) {
  const auto body = [&](std::string_view between) {
    return fmt::format(R"(  %w0 = buffer.view %b0[%base] : buffer -> view<7x{0}>
  %w1 = buffer.view %b1[%base] : buffer -> view<9x{0}>
  %w2 = buffer.view %b2[%base] : buffer -> view<7x{0}>
  %w3 = buffer.view %b3[%base] : buffer -> view<7xi32>
  %w4 = buffer.view %b4[%base] : buffer -> view<7xi1>
  %v = vector.load %w0[0] : view<7x{0}> -> vector<7x{0}>
  %o = vector.load %w3[0] : view<7xi32> -> vector<7xi32>
  %m = vector.load %w4[0] : view<7xi1> -> vector<7xi1>
  %one = index.constant 1 : index
{1})",
                       element, between);
  };
  const std::string how = "{ordering = acq_rel, scope = workgroup}";
  std::string text = fmt::format(
      "  %old = vector.atomic.rmw<{1}> %v, %w1[%one][%o] {2} : vector<7x{0}>, view<9x{0}>, "
      "vector<7xi32>\n"
      "  %then = vector.atomic.rmw.mask<{1}> %v, %w1[0][%o], %m, %old {2} : vector<7x{0}>, "
      "view<9x{0}>, "
      "vector<7xi32>, vector<7xi1>, vector<7x{0}>\n"
      "  vector.store %then, %w2[0] : vector<7x{0}>, view<7x{0}>\n",
      element, kind, how);
  if (!is_exchange(kind)) {
    text += fmt::format(
        "  vector.atomic.reduce<{1}> %v, %w1[0][%o] {2} : vector<7x{0}>, view<9x{0}>, "
        "vector<7xi32>\n"
        "  vector.atomic.reduce.mask<{1}> %v, %w1[1][%o], %m {2} : vector<7x{0}>, view<9x{0}>, "
        "vector<7xi32>, vector<7xi1>\n",
        element, kind, how);
  }
  cases.push_back(
      {fmt::format("vector {} of {}", kind, element),
       kernel_text(5, body(text)),
       {values_of(element, 7, 3), values_of(element, 9, 4), zeros(*scalar_from_name(element), 7),
        buffer_of<int32_t>(ScalarKind::I32, {0, 3, 3, 7, 0, 5, 1}),
        buffer_of<uint8_t>(ScalarKind::I1, {1, 0, 1, 1, 1, 0, 1})},
       {{1, 1, 1}, {1, 1, 1}},
       {}});
}

// Some elements are what is expected, bit by bit, and some are not.
Case exchange_case(std::string_view element) {
  const std::string body = fmt::format(R"(  %w0 = buffer.view %b0[%base] : buffer -> view<8x{0}>
  %w1 = buffer.view %b1[%base] : buffer -> view<8x{0}>
  %w2 = buffer.view %b2[%base] : buffer -> view<8x{0}>
  %w3 = buffer.view %b3[%base] : buffer -> view<8xi32>
  %o = vector.load %w3[0] : view<8xi32> -> vector<8xi32>
  %expected = vector.load %w0[0] : view<8x{0}> -> vector<8x{0}>
  %new = vector.load %w1[0] : view<8x{0}> -> vector<8x{0}>
  %old = vector.atomic.cmpxchg %expected, %new, %w1[0][%o] {{failure_ordering = acquire, scope = device, success_ordering = acq_rel}} : vector<8x{0}>, view<8x{0}>, vector<8xi32> -> vector<8x{0}>
  vector.store %old, %w2[0] : vector<8x{0}>, view<8x{0}>
  %e = view.load %w0[7] : view<8x{0}> -> {0}
  %n = view.load %w0[6] : view<8x{0}> -> {0}
  %last = view.atomic.cmpxchg %e, %n, %w0[7] {{failure_ordering = relaxed, scope = system, success_ordering = seq_cst}} : {0}, view<8x{0}> -> {0}
  %again = view.atomic.cmpxchg %last, %e, %w0[0] {{failure_ordering = seq_cst, scope = system, success_ordering = seq_cst}} : {0}, view<8x{0}> -> {0}
  %read = view.atomic.load %w0[7] {{ordering = acquire, scope = device}} : view<8x{0}> -> {0}
  view.atomic.store %read, %w2[7] {{ordering = release, scope = device}} : {0}, view<8x{0}>
  view.store %again, %w2[6] : {0}, view<8x{0}>
)",
                                       element);
  Buffer expected = values_of(element, 8, 5);
  Buffer memory = values_of(element, 8, 6);
  const size_t width = scalar_bytes(expected.element);
  for (const size_t same : {1, 2, 5}) {
    std::memcpy(memory.bytes.data() + same * width, expected.bytes.data() + same * width, width);
  }
  return {fmt::format("compare and exchange of {}", element),
          kernel_text(4, body),
          {expected, memory, zeros(expected.element, 8),
           buffer_of<int32_t>(ScalarKind::I32, {0, 1, 2, 3, 4, 5, 6, 7})},
          {{1, 1, 1}, {1, 1, 1}},
          {}};
}

}  // namespace

std::vector<Case> atomic_cases() {
  constexpr std::string_view kOrderings[] = {"relaxed", "acquire", "release", "acq_rel", "seq_cst"};
  std::vector<Case> cases;
  size_t number = 0;
  for (const Kinds& row : kinds()) {
    for (const std::string_view kind : row.kinds) {
      add_view_cases(cases, row.element, kind, kOrderings[number++ % 5]);
      add_vector_cases(cases, row.element, kind);
    }
    cases.push_back(exchange_case(row.element));
  }
  add_view_cases(cases, "f32", "addf", "relaxed");
  return cases;
}

}  // namespace loom::ops
