#include "loom/target/x86/variants.h"

#include <fmt/format.h>

#include "loom/base/check.h"
#include "loom/target/x86/codegen.h"

namespace loom {
namespace {

constexpr std::string_view kEntry = "(ptr, ptr, i64, i64)";

// A constant of bytes in LLVM's text.
std::string bytes_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("\\{:02X}", static_cast<uint8_t>(byte));
  return fmt::format("[{} x i8] c\"{}\"", bytes.size(), text);
}

// What does not depend on the kernels. {0} levels, {1} kernels, {2} prefix, {3} bytes of the
// message.
//
// The words of @has and @needs are those of CpuLevel, in its order.
constexpr std::string_view kChoosing = R"(
define internal {{ i32, i32, i32, i32 }} @cpuid(i32 %leaf, i32 %part) {{
  %words = call {{ i32, i32, i32, i32 }} asm sideeffect "cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},0,2,~{{dirflag}},~{{fpsr}},~{{flags}}"(i32 %leaf, i32 %part)
  ret {{ i32, i32, i32, i32 }} %words
}}

define internal i32 @saved_registers(i32 %leaf_1_ecx) {{
  %osxsave = and i32 %leaf_1_ecx, 134217728
  %known = icmp ne i32 %osxsave, 0
  br i1 %known, label %ask, label %none
ask:
  %words = call {{ i32, i32 }} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}},~{{dirflag}},~{{fpsr}},~{{flags}}"(i32 0)
  %low = extractvalue {{ i32, i32 }} %words, 0
  ret i32 %low
none:
  ret i32 0
}}

define internal [6 x i32] @has() {{
  %basic = call {{ i32, i32, i32, i32 }} @cpuid(i32 0, i32 0)
  %last = extractvalue {{ i32, i32, i32, i32 }} %basic, 0
  %features = call {{ i32, i32, i32, i32 }} @cpuid(i32 1, i32 0)
  %leaf_1_ecx = extractvalue {{ i32, i32, i32, i32 }} %features, 2
  %xcr0 = call i32 @saved_registers(i32 %leaf_1_ecx)
  %leaf_7 = call {{ i32, i32, i32, i32 }} @cpuid(i32 7, i32 0)
  %last_part = extractvalue {{ i32, i32, i32, i32 }} %leaf_7, 0
  %given_ebx = extractvalue {{ i32, i32, i32, i32 }} %leaf_7, 1
  %given_ecx = extractvalue {{ i32, i32, i32, i32 }} %leaf_7, 2
  %leaf_7_1 = call {{ i32, i32, i32, i32 }} @cpuid(i32 7, i32 1)
  %given_eax = extractvalue {{ i32, i32, i32, i32 }} %leaf_7_1, 0
  %has_leaf_7 = icmp uge i32 %last, 7
  %has_part_1 = icmp uge i32 %last_part, 1
  %has_leaf_7_1 = and i1 %has_leaf_7, %has_part_1
  %leaf_7_ebx = select i1 %has_leaf_7, i32 %given_ebx, i32 0
  %leaf_7_ecx = select i1 %has_leaf_7, i32 %given_ecx, i32 0
  %leaf_7_1_eax = select i1 %has_leaf_7_1, i32 %given_eax, i32 0
  %extended_basic = call {{ i32, i32, i32, i32 }} @cpuid(i32 2147483648, i32 0)
  %last_extended = extractvalue {{ i32, i32, i32, i32 }} %extended_basic, 0
  %extended_features = call {{ i32, i32, i32, i32 }} @cpuid(i32 2147483649, i32 0)
  %extended = extractvalue {{ i32, i32, i32, i32 }} %extended_features, 2
  %has_extended = icmp ugt i32 %last_extended, 2147483648
  %leaf_80000001_ecx = select i1 %has_extended, i32 %extended, i32 0
  %a = insertvalue [6 x i32] poison, i32 %leaf_1_ecx, 0
  %b = insertvalue [6 x i32] %a, i32 %leaf_7_ebx, 1
  %c = insertvalue [6 x i32] %b, i32 %leaf_7_ecx, 2
  %d = insertvalue [6 x i32] %c, i32 %leaf_7_1_eax, 3
  %e = insertvalue [6 x i32] %d, i32 %leaf_80000001_ecx, 4
  %f = insertvalue [6 x i32] %e, i32 %xcr0, 5
  ret [6 x i32] %f
}}

define internal i1 @fits([6 x i32] %has, i64 %level) {{
  %copy = alloca [6 x i32]
  store [6 x i32] %has, ptr %copy
  br label %next
next:
  %word = phi i64 [ 0, %0 ], [ %after, %next ]
  %good = phi i1 [ true, %0 ], [ %still, %next ]
  %place = getelementptr [{0} x [6 x i32]], ptr @needs, i64 0, i64 %level, i64 %word
  %need = load i32, ptr %place
  %there = getelementptr [6 x i32], ptr %copy, i64 0, i64 %word
  %given = load i32, ptr %there
  %both = and i32 %need, %given
  %enough = icmp eq i32 %both, %need
  %still = and i1 %good, %enough
  %after = add i64 %word, 1
  %more = icmp ult i64 %after, 6
  br i1 %more, label %next, label %done
done:
  ret i1 %still
}}

define internal void @use(i64 %level) {{
  br label %next
next:
  %kernel = phi i64 [ 0, %0 ], [ %after, %next ]
  %from = getelementptr [{0} x [{1} x ptr]], ptr @variants, i64 0, i64 %level, i64 %kernel
  %variant = load ptr, ptr %from
  %to = getelementptr [{1} x ptr], ptr @chosen, i64 0, i64 %kernel
  store atomic ptr %variant, ptr %to monotonic, align 8
  %after = add i64 %kernel, 1
  %more = icmp ult i64 %after, {1}
  br i1 %more, label %next, label %done
done:
  %name_place = getelementptr [{0} x ptr], ptr @names, i64 0, i64 %level
  %name = load ptr, ptr %name_place
  store atomic ptr %name, ptr @level monotonic, align 8
  ret void
}}

define internal i1 @use_best() {{
  %has = call [6 x i32] @has()
  br label %next
next:
  %above = phi i64 [ {0}, %0 ], [ %level, %lower ]
  %level = sub i64 %above, 1
  %good = call i1 @fits([6 x i32] %has, i64 %level)
  br i1 %good, label %found, label %lower
lower:
  %more = icmp ne i64 %level, 0
  br i1 %more, label %next, label %none
found:
  call void @use(i64 %level)
  ret i1 true
none:
  ret i1 false
}}

define internal void @start() {{
  %ignored = call i1 @use_best()
  ret void
}}

define internal i1 @is_same(ptr %a, ptr %b) {{
  br label %next
next:
  %at = phi i64 [ 0, %0 ], [ %after, %same ]
  %a_place = getelementptr i8, ptr %a, i64 %at
  %b_place = getelementptr i8, ptr %b, i64 %at
  %a_byte = load i8, ptr %a_place
  %b_byte = load i8, ptr %b_place
  %equal = icmp eq i8 %a_byte, %b_byte
  br i1 %equal, label %same, label %other
same:
  %after = add i64 %at, 1
  %end = icmp eq i8 %a_byte, 0
  br i1 %end, label %whole, label %next
whole:
  ret i1 true
other:
  ret i1 false
}}

define i32 @{2}_use_cpu_level(ptr %wanted) {{
  %any = icmp eq ptr %wanted, null
  br i1 %any, label %best, label %named
best:
  %found = call i1 @use_best()
  %found_word = zext i1 %found to i32
  ret i32 %found_word
named:
  %has = call [6 x i32] @has()
  br label %next
next:
  %level = phi i64 [ 0, %named ], [ %after, %other ]
  %place = getelementptr [{0} x ptr], ptr @names, i64 0, i64 %level
  %name = load ptr, ptr %place
  %same = call i1 @is_same(ptr %name, ptr %wanted)
  br i1 %same, label %known, label %other
other:
  %after = add i64 %level, 1
  %more = icmp ult i64 %after, {0}
  br i1 %more, label %next, label %no
known:
  %good = call i1 @fits([6 x i32] %has, i64 %level)
  br i1 %good, label %yes, label %no
yes:
  call void @use(i64 %level)
  ret i32 1
no:
  ret i32 0
}}

define ptr @{2}_cpu_level() {{
  %name = load atomic ptr, ptr @level monotonic, align 8
  ret ptr %name
}}

define internal void @none(ptr %args, ptr %shape, i64 %begin, i64 %end) {{
  %written = call i64 asm sideeffect "syscall", "={{ax}},0,{{di}},{{si}},{{dx}},~{{rcx}},~{{r11}},~{{memory}}"(i64 1, i64 2, ptr @message, i64 {3})
  call void @llvm.trap()
  unreachable
}}
declare void @llvm.trap()
@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{{ i32, ptr, ptr }} {{ i32 101, ptr @start, ptr null }}]
)";

// What a list of LLVM's text is made of: one text for each element.
template <class List, class Text>
std::string joined(const List& list, Text text) {
  std::string all;
  for (const auto& element : list) all += (all.empty() ? "" : ", ") + text(element);
  return all;
}

std::string tables(const VariantChoice& choice) {
  const size_t levels = choice.levels.size();
  const size_t kernels = choice.kernels.size();
  std::string text;
  for (size_t i = 0; i < levels; ++i) {
    text += fmt::format("@name.{} = private constant {}\n", i,
                        bytes_text(std::string(choice.levels[i]->name) + '\0'));
  }
  size_t number = 0;
  text += fmt::format("@names = internal constant [{} x ptr] [{}]\n", levels,
                      joined(choice.levels, [&](const CpuLevel*) {
                        return fmt::format("ptr @name.{}", number++);
                      }));
  text +=
      fmt::format("@needs = internal constant [{} x [6 x i32]] [{}]\n", levels,
                  joined(choice.levels, [](const CpuLevel* level) {
                    return fmt::format("[6 x i32] [i32 {}, i32 {}, i32 {}, i32 {}, i32 {}, i32 {}]",
                                       level->leaf_1_ecx, level->leaf_7_ebx, level->leaf_7_ecx,
                                       level->leaf_7_1_eax, level->leaf_80000001_ecx, level->xcr0);
                  }));
  text += fmt::format("@variants = internal constant [{} x [{} x ptr]] [{}]\n", levels, kernels,
                      joined(choice.levels, [&](const CpuLevel* level) {
                        return fmt::format("[{} x ptr] [{}]", kernels,
                                           joined(choice.kernels, [&](const std::string& kernel) {
                                             return fmt::format("ptr @\"{}{}\"", kernel,
                                                                variant_ending(*level));
                                           }));
                      }));
  text += fmt::format(
      "@chosen = internal global [{} x ptr] [{}], align 8\n", kernels,
      joined(choice.kernels, [](const std::string&) { return std::string("ptr @none"); }));
  text += "@level = internal global ptr null, align 8\n";
  return text;
}

}  // namespace

std::string variant_ending(const CpuLevel& level) { return fmt::format(".{}", level.name); }

std::string variant_choice_text(const VariantChoice& choice) {
  LOOM_CHECK(!choice.levels.empty() && !choice.kernels.empty(), "there is nothing to choose");
  const std::string message =
      fmt::format("{}: this processor is below {}, the lowest level of its kernels\n",
                  choice.library, choice.levels.front()->name);
  std::string text = tables(choice);
  text += fmt::format("@message = private constant {}\n", bytes_text(message));
  text += fmt::format("@contracts = private constant {}, section \"{}\", align 1\n",
                      bytes_text(choice.contracts), kContractSection);
  text += "@llvm.compiler.used = appending global [1 x ptr] [ptr @contracts]\n";
  for (const CpuLevel* const level : choice.levels) {
    for (const std::string& kernel : choice.kernels) {
      text +=
          fmt::format("declare hidden void @\"{}{}\"{}\n", kernel, variant_ending(*level), kEntry);
    }
  }
  for (size_t i = 0; i < choice.kernels.size(); ++i) {
    text += fmt::format(
        "define void @\"{0}\"(ptr %args, ptr %shape, i64 %begin, i64 %end) {{\n"
        "  %variant = load atomic ptr, ptr getelementptr ([{1} x ptr], ptr @chosen, i64 0, i64 {2})"
        " monotonic, align 8\n"
        "  musttail call void %variant(ptr %args, ptr %shape, i64 %begin, i64 %end)\n"
        "  ret void\n"
        "}}\n",
        choice.kernels[i], choice.kernels.size(), i);
  }
  return text + fmt::format(fmt::runtime(kChoosing), choice.levels.size(), choice.kernels.size(),
                            choice.prefix, message.size());
}

}  // namespace loom
