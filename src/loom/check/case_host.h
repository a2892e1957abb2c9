// What the operations of a case do: the host that the interpreter calls.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loom/check/sample_runner.h"

namespace loom::check {

class SampleHost : public CaseHost {
 public:
  SampleHost(const RunContext& context, const InterpOptions& interp, const Case& of,
             uint64_t ordinal, Arena& arena, SampleResult& result);

  bool check(OpId op, std::span<const CaseValue> operands,
             std::vector<CaseValue>& results) override;
  std::optional<bool> launch(OpId op, std::span<const CaseValue> operands) override;
  std::optional<std::span<const std::byte>> parameter(std::string_view root, std::string_view key,
                                                      uint64_t bytes) override;

  // What the case states with check.work, by WorkUnit.
  const std::array<uint64_t, 2>& work() const { return work_; }

  // Turns what happened into the outcome; `ended` says whether the body ran to its end.
  void finish(bool ended);

 private:
  struct Written {
    std::string path;
    std::string content;
  };
  struct Seed {
    std::string tensor;
    int64_t seed;
  };

  bool unplannable(OpId op, std::string detail);
  const Type& type_of(ValueId value) const;
  std::vector<int64_t> shape_of(ValueId value) const;
  std::string name_of(ValueId value) const;
  std::string expand_path(std::string_view path) const;
  std::optional<std::span<std::byte>> take(OpId op, ValueId result);
  bool parameter(OpId op, std::vector<CaseValue>& results) const;
  bool generate(OpId op, std::span<const CaseValue> operands, std::vector<CaseValue>& results);
  bool read_file(OpId op, std::vector<CaseValue>& results);
  bool write_file(OpId op, const CaseValue& value);
  bool write_now(OpId op, const Written& file);

  // --- oracle.cpp ---
  bool oracle(OpId op, std::span<const CaseValue> operands, std::vector<CaseValue>& results);
  bool call_by_lane(OpId op, OpId callee, std::span<const CaseValue> operands,
                    std::vector<CaseValue>& results);
  bool call_by_storage(OpId op, OpId callee, std::span<const CaseValue> operands,
                       std::vector<CaseValue>& results);
  bool call_external(OpId op, const std::string& name, std::span<const CaseValue> operands,
                     std::vector<CaseValue>& results);

  // --- expect.cpp ---
  bool expect(OpId op, std::span<const CaseValue> operands);
  void expect_shape(OpId op, std::span<const CaseValue> operands);
  void expect_ranking(OpId op, uint64_t top, const Elements& actual, const Elements& expected);
  void report(OpId op, const Elements& actual, const Elements& expected,
              const Comparison& comparison);
  void keep(OpId op, const Elements& actual, const Elements& expected);
  void finish_events(bool ended);

  const RunContext& context_;
  const Module& module_;
  const InterpOptions& interp_;
  const Case& case_;
  const uint64_t ordinal_;
  Arena& arena_;
  SampleResult& result_;
  std::vector<uint64_t> places_;     // of the parameters' values
  std::vector<Written> on_failure_;  // files
  std::vector<Seed> seeds_;          // that random data was made from
  std::vector<std::string> taken_;   // names of the tensors, in the order of the arena
  std::array<uint64_t, 2> work_ = {0, 0};
  bool unplannable_ = false;
};

}  // namespace loom::check
