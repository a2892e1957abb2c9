#include "loom/aot/c_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace loom {
namespace {

constexpr std::string_view kIntroduction =
    R"(/* Kernels of {file} for x86-64 Linux. Link with that library, or look its functions up with dlsym.
 *
 * Each kernel has a variant for each of these levels of processors: {levels}.
 * Loading the library chooses the best one that the processor and the operating system have.
 *
 * For a kernel K there are
 *
 *   K_run     runs it with arguments by name, all of it on the calling thread
 *   K_shape   turns its workload into the shape of a dispatch
 *   K         runs the workgroups [begin, end) of a dispatch, numbered with x fastest; disjoint ranges
 *             may run on several threads at once
 *
 * and K_geometry, which K_shape calls.
 *
 * K_run and K_shape return 0, or -1 where the workload has no dispatch: a count or size that is negative
 * or does not fit into 32 bits, a size of 0, or more workgroups than 64 bits can number. K_run has then
 * done nothing. What is said of a kernel below is for the caller to keep; nothing checks it.
 *
 * K takes one 8-byte slot for each argument, in the order below: the address of storage, or the bits of
 * a number in the low bytes and zeros above. Kernels keep no state, allocate nothing and may run on any
 * number of threads at once. What a workgroup keeps lies on the stack of the thread that runs it: "Stack"
 * says below how large a kernel's frame is, of the variant where it is largest.
 */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The same in every such header, and in Loom's kernel_abi.h. */
#ifndef LOOM_DISPATCH_SHAPE
#define LOOM_DISPATCH_SHAPE
typedef struct LoomDispatchShape {{
  uint32_t count[3]; /* workgroups along x, y, z */
  uint32_t size[3];  /* workitems of a workgroup along x, y, z */
}} LoomDispatchShape;

typedef void (*LoomKernelEntry)(const uint64_t* args, const LoomDispatchShape* shape,
                                uint64_t begin, uint64_t end);

/* A program may define this function: a kernel calls it where one of its checks does not hold, with the
 * arguments of K (or null in a function of the kernel), and what it expected. Without a definition such
 * a kernel traps. */
void loom_check_failed(const uint64_t* args, const char* text);
#endif

#ifndef LOOM_KERNEL_LIBRARY
#define LOOM_KERNEL_LIBRARY
static inline int loom_shape_of(LoomKernelEntry geometry, uint64_t* slots, unsigned workload,
                                LoomDispatchShape* shape) {{
  const LoomDispatchShape one = {{{{1, 1, 1}}, {{1, 1, 1}}}};
  int64_t numbers[6] = {{0, 0, 0, 0, 0, 0}};
  int64_t* const to = numbers;
  unsigned i;
  memcpy(&slots[workload], &to, sizeof to);
  geometry(slots, &one, 0, 1);
  for (i = 0; i < 6; ++i) {{
    if (numbers[i] < (i < 3 ? 0 : 1) || numbers[i] > INT64_C(0xffffffff)) return -1;
    memcpy(i < 3 ? &shape->count[i] : &shape->size[i - 3], &numbers[i], 4);
  }}
  return 0;
}}

static inline int loom_run_all(LoomKernelEntry kernel, const uint64_t* slots,
                               const LoomDispatchShape* shape) {{
  uint64_t groups = shape->count[0];
  groups *= shape->count[1];
  if (groups != 0 && shape->count[2] > UINT64_MAX / groups) return -1;
  kernel(slots, shape, 0, groups * shape->count[2]);
  return 0;
}}
#endif

/* The level in use, such as "x86-64-v3". Null where the processor is below all of them: a kernel then
 * says so on standard error and traps. */
const char* {prefix}_cpu_level(void);

/* Uses the variants of a level from now on, or the best ones again where `level` is null. 1, or 0 where
 * the library has no such level or the processor is below it; nothing is changed then. Calls that are on
 * their way on other threads end as they began. */
int {prefix}_use_cpu_level(const char* level);
)";

constexpr std::string_view kEnd = R"(
#ifdef __cplusplus
}
#endif

#endif
)";

// What a comment of C can hold.
std::string comment_text(std::string text) {
  for (size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) text.replace(at, 2, "* /");
  for (size_t at = 0; (at = text.find("/*", at)) != std::string::npos;) text.replace(at, 2, "/ *");
  // Or it would be a trigraph.
  for (size_t at = 0; (at = text.find("??", at)) != std::string::npos;) text.insert(at + 1, " ");
  while (!text.empty() && (text.back() == '\\' || text.back() == ' ')) text.pop_back();
  return text;
}

template <class List, class Text>
std::string joined(const List& list, std::string_view separator, Text text) {
  std::string all;
  for (const auto& element : list) {
    if (!all.empty()) all += separator;
    all += text(element);
  }
  return all;
}

std::string declaration(const CParameter& parameter) {
  return fmt::format("{} {}", parameter.type, parameter.name);
}

class KernelText {
 public:
  explicit KernelText(const CKernel& kernel) : kernel_(kernel) {
    for (const CParameter& value : kernel.workload) formals_.push_back(value);
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
      if (kernel.same_as[i] < 0) formals_.push_back(kernel.arguments[i]);
    }
  }

  std::string text() {
    describe();
    entry();
    shape();
    run();
    return std::move(out_);
  }

 private:
  void line(std::string_view text) { out_ += fmt::format("{}\n", text); }
  void described(const CParameter& parameter, bool workload, size_t widest) {
    std::string notes = parameter.notes;
    if (workload) notes = "workload";
    line(comment_text(fmt::format(" *   {:<{}}  {}{}{}", parameter.name, widest,
                                  parameter.loom_type, notes.empty() ? "" : ", ", notes)));
  }

  void describe() {
    line("");
    line(fmt::format("/* {}: kernel @{}", kernel_.name, comment_text(kernel_.symbol)));
    for (const std::string& text : kernel_.comment) line(comment_text(" *" + text));
    line(" *");
    size_t widest = 0;
    for (const CParameter& parameter : formals_) {
      widest = std::max(widest, parameter.name.size());
    }
    for (size_t i = 0; i < formals_.size(); ++i) {
      described(formals_[i], i < kernel_.workload.size(), widest);
    }
    const std::string slots =
        joined(kernel_.arguments, ", ", [](const CParameter& each) { return each.name; });
    line(fmt::format(" * Slots: {}.", slots.empty() ? "none" : slots));
    if (!kernel_.contract.empty()) {
      line(comment_text(fmt::format(
          " * Where: {}.",
          joined(kernel_.contract, ", ", [](const std::string& each) { return each; }))));
    }
    line(fmt::format(" * Stack: {} bytes.", kernel_.frame_bytes));
    line(" */");
  }

  void entry() {
    for (const std::string& name : {kernel_.name, geometry_name(kernel_.name)}) {
      line(fmt::format(
          "void {}(const uint64_t* args, const LoomDispatchShape* shape, uint64_t begin, "
          "uint64_t end);",
          name));
    }
  }

  void fill(std::string_view array, const std::vector<CParameter>& values, size_t slots) {
    line(fmt::format("  uint64_t {}[{}] = {{0}};", array, std::max<size_t>(slots, 1)));
    for (size_t i = 0; i < values.size(); ++i) {
      line(fmt::format("  memcpy(&{}[{}], &{}, sizeof {});", array, i, values[i].name,
                       values[i].name));
    }
  }

  void shape() {
    std::string parameters;
    for (const CParameter& value : kernel_.workload) parameters += declaration(value) + ", ";
    line(fmt::format("static inline int {}({}LoomDispatchShape* loom_shape) {{",
                     shape_name(kernel_.name), parameters));
    fill("loom_slots", kernel_.workload, kernel_.workload.size() + 1);
    line(fmt::format("  return loom_shape_of({}, loom_slots, {}, loom_shape);",
                     geometry_name(kernel_.name), kernel_.workload.size()));
    line("}");
  }

  void run() {
    const std::string parameters = joined(formals_, ", ", declaration);
    line(fmt::format("static inline int {}({}) {{", run_name(kernel_.name),
                     parameters.empty() ? "void" : parameters));
    line("  LoomDispatchShape loom_shape;");
    fill("loom_slots", kernel_.arguments, kernel_.arguments.size());
    std::string workload;
    for (const CParameter& value : kernel_.workload) workload += value.name + ", ";
    line(fmt::format("  if ({}({}&loom_shape) != 0) return -1;", shape_name(kernel_.name),
                     workload));
    line(fmt::format("  return loom_run_all({}, loom_slots, &loom_shape);", kernel_.name));
    line("}");
  }

  const CKernel& kernel_;
  std::vector<CParameter> formals_;
  std::string out_;
};

}  // namespace

std::string c_header(const HeaderParts& parts) {
  const std::string levels =
      joined(parts.levels, ", ", [](const std::string& level) { return level; });
  std::string text = fmt::format(
      fmt::runtime(kIntroduction), fmt::arg("file", comment_text(parts.file_name)),
      fmt::arg("levels", levels), fmt::arg("guard", fmt::format("LOOM_LIBRARY_{}_H", parts.prefix)),
      fmt::arg("prefix", parts.prefix));
  for (const CKernel& kernel : parts.kernels) text += KernelText(kernel).text();
  text += kEnd;
  return text;
}

}  // namespace loom
