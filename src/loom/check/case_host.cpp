#include "loom/check/case_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "loom/base/file.h"
#include "loom/check/arrays.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/runtime/parameters/npy.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom::check {

using enum OpKind;

namespace fs = std::filesystem;

SampleHost::SampleHost(const RunContext& context, const InterpOptions& interp, const Case& of,
                       uint64_t ordinal, Arena& arena, SampleResult& result)
    : context_(context),
      module_(*context.module),
      interp_(interp),
      case_(of),
      ordinal_(ordinal),
      arena_(arena),
      result_(result) {
  case_.decode(ordinal_, places_);
}

bool SampleHost::unplannable(OpId op, std::string detail) {
  result_.diagnostics.emit(
      Diag::CheckUnplannable, module_.location(op),
      {{"case", std::string(case_.name)}, {"detail", std::move(detail)}, {"repair", ""}});
  unplannable_ = true;
  return false;
}

const Type& SampleHost::type_of(ValueId value) const {
  return module_.types[module_.type_of(value)];
}

std::vector<int64_t> SampleHost::shape_of(ValueId value) const {
  std::vector<int64_t> shape;
  for (const Dim dim : type_of(value).dims) shape.push_back(dim.extent());
  return shape;
}

std::string SampleHost::name_of(ValueId value) const { return value_name_text(module_, value); }

std::optional<std::span<std::byte>> SampleHost::take(OpId op, ValueId result) {
  const uint64_t bytes = dense_bytes(type_of(result)).value_or(0);
  const auto taken = arena_.take(bytes);
  if (!taken) {
    result_.diagnostics.emit(Diag::RunOutOfMemory, module_.location(op),
                             {{"bytes", std::to_string(bytes)}, {"what", name_of(result)}});
    unplannable_ = true;
    return std::nullopt;
  }
  taken_.push_back(name_of(result));
  return taken;
}

bool SampleHost::check(OpId op, std::span<const CaseValue> operands,
                       std::vector<CaseValue>& results) {
  switch (module_.op(op).kind) {
    case CheckRequires:
    case CheckSkipIf:
    case CheckExpectEvent:
      return true;  // answered before and after the body
    case CheckWork: {
      const auto unit = static_cast<size_t>(module_.attr(op, attr_slot(CheckWork, "unit")).value());
      work_[unit] += std::get<LaneValues>(operands[0]).lanes[0];
      return true;
    }
    case CheckParamRange:
    case CheckParamChoice:
    case CheckParamSeed:
      return parameter(op, results);
    case CheckLiteral: {
      const ScalarKind kind = type_of(module_.result(op)).element;
      const auto value = from_literal(module_.attr(op, attr_slot(CheckLiteral, "value")), kind);
      results[0] = scalar_argument(value.value_or(ScalarValue{kind, 0}));
      return true;
    }
    case CheckGenerateFill:
    case CheckGenerateIota:
    case CheckGenerateRandomUniform:
      return generate(op, operands, results);
    case CheckFileReadNpy:
      return read_file(op, results);
    case CheckFileWriteNpy:
      return write_file(op, operands[0]);
    case CheckOracleCall:
      return oracle(op, operands, results);
    default:
      return expect(op, operands);
  }
}

bool SampleHost::parameter(OpId op, std::vector<CaseValue>& results) const {
  const auto found = std::ranges::find(case_.parameters, op, &Parameter::op);
  const auto place = static_cast<size_t>(found - case_.parameters.begin());
  const ScalarKind kind = type_of(module_.result(op)).element;
  results[0] =
      scalar_argument(from_bits(kind, static_cast<uint64_t>(found->value(places_[place]))));
  return true;
}

bool SampleHost::generate(OpId op, std::span<const CaseValue> operands,
                          std::vector<CaseValue>& results) {
  const OpKind kind = module_.op(op).kind;
  const ScalarKind element = type_of(module_.result(op)).element;
  const auto taken = take(op, module_.result(op));
  if (!taken) return false;
  results[0] = *taken;
  const auto literal = [&](unsigned slot) {
    return from_literal(module_.attr(op, slot), element).value_or(ScalarValue{element, 0});
  };
  if (kind == CheckGenerateFill) {
    fill(*taken, element, literal(attr_slot(CheckGenerateFill, "value")));
    return true;
  }
  if (kind == CheckGenerateIota) {
    constexpr unsigned kPeriod = attr_slot(CheckGenerateIota, "period");
    const uint64_t period = module_.has_attr(op, kPeriod)
                                ? static_cast<uint64_t>(module_.attr(op, kPeriod).value())
                                : 0;
    iota(*taken, element, literal(attr_slot(CheckGenerateIota, "offset")),
         literal(attr_slot(CheckGenerateIota, "step")), period);
    return true;
  }
  const uint64_t seed = std::get<LaneValues>(operands[0]).lanes[0];
  seeds_.push_back({name_of(module_.result(op)), static_cast<int64_t>(seed)});
  constexpr unsigned kLower = attr_slot(CheckGenerateRandomUniform, "lower");
  constexpr unsigned kUpper = attr_slot(CheckGenerateRandomUniform, "upper");
  if (is_float(element)) {
    random_floats(*taken, element, seed, literal(kLower), literal(kUpper));
  } else {
    random_integers(*taken, element, seed, module_.attr(op, kLower).value(),
                    module_.attr(op, kUpper).value());
  }
  return true;
}

// --- files --------------------------------------------------------------------------------------

// `{case}` and `{sample}` stand for this sample.
std::string SampleHost::expand_path(std::string_view path) const {
  std::string expanded(path);
  const std::pair<std::string_view, std::string> places[] = {
      {"{case}", std::string(case_.name)}, {"{sample}", std::to_string(ordinal_)}};
  for (const auto& [key, text] : places) {
    for (size_t at = expanded.find(key); at != expanded.npos;
         at = expanded.find(key, at + text.size())) {
      expanded.replace(at, key.size(), text);
    }
  }
  return expanded;
}

// Fixtures lie beside the source that names them.
bool SampleHost::read_file(OpId op, std::vector<CaseValue>& results) {
  const std::string path = expand_path(
      module_.strings.text(module_.attr(op, attr_slot(CheckFileReadNpy, "path")).string()));
  const Location location = module_.location(op);
  fs::path file(path);
  if (file.is_relative() && location.file.valid()) {
    file = fs::path(module_.files().file(location.file).path).parent_path() / file;
  }
  const ArrayType expected = array_type(type_of(module_.result(op)));
  Diagnostics found;
  const auto array = ArrayFile::open(file.string(), std::nullopt, found);
  if (!array) {
    std::string why = found.all().empty() ? "it cannot be read" : found.all()[0].message();
    return unplannable(op, std::move(why));
  }
  if (!same_elements(array->type, expected)) {
    return unplannable(op, fmt::format("'{}' holds {} but {} is stated", file.string(),
                                       to_string(array->type), to_string(expected)));
  }
  const auto taken = take(op, module_.result(op));
  if (!taken) return false;
  std::ranges::copy(array->bytes, taken->begin());
  results[0] = *taken;
  return true;
}

bool SampleHost::write_now(OpId op, const Written& file) {
  std::error_code error;
  const fs::path path(file.path);
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const auto done = loom::write_file(file.path, file.content);
  if (!done) {
    result_.diagnostics.emit(Diag::IoWrite, module_.location(op),
                             {{"path", done.error().path}, {"reason", done.error().reason}});
  }
  return done.has_value();
}

bool SampleHost::write_file(OpId op, const CaseValue& value) {
  const Type& type = type_of(module_.operand(op, 0));
  const auto array = write_npy(array_type(type), std::get<std::span<std::byte>>(value));
  if (!array) return unplannable(op, array.error().text());
  const std::string path = expand_path(
      module_.strings.text(module_.attr(op, attr_slot(CheckFileWriteNpy, "path")).string()));
  const fs::path place = fs::path(context_.output_folder) / path;
  constexpr unsigned kMode = attr_slot(CheckFileWriteNpy, "mode");
  const bool on_failure =
      module_.has_attr(op, kMode) &&
      module_.attr(op, kMode).value() == static_cast<int64_t>(WriteMode::OnFailure);
  if (on_failure) {
    on_failure_.push_back({place.string(), *array});
    return true;
  }
  return write_now(op, {place.string(), *array});
}

// --- launches and the end -----------------------------------------------------------------------

std::optional<bool> SampleHost::launch(OpId op, std::span<const CaseValue> operands) {
  if (context_.launcher == nullptr) return std::nullopt;
  const LaunchOutcome outcome = context_.launcher->launch(op, operands, result_.diagnostics);
  unplannable_ |= outcome == LaunchOutcome::Unplannable;
  if (outcome != LaunchOutcome::Done) return false;
  if (const auto damaged = arena_.damaged()) {
    result_.diagnostics.emit(
        Diag::CheckExpectation, module_.location(op),
        {{"detail",
          fmt::format("something was written beside the bytes of '{}'", taken_[*damaged])}});
    return false;
  }
  return true;
}

std::optional<std::span<const std::byte>> SampleHost::parameter(std::string_view root,
                                                                std::string_view key,
                                                                uint64_t bytes) {
  const ParameterSet none;
  const ParameterSet& all = context_.parameters != nullptr ? *context_.parameters : none;
  const auto found = all.bytes_of(root, key, bytes, result_.diagnostics);
  unplannable_ |= !found;
  return found;
}

void SampleHost::finish(bool ended) {
  // An operation that the interpreter lacks is no fault of the case.
  const auto& told = result_.diagnostics.all();
  unplannable_ |= !ended && !told.empty() && told.back().id == Diag::LoweringNotSupported;
  finish_events(ended);
  result_.work = work_;
  Diagnostics& diagnostics = result_.diagnostics;
  if (unplannable_) {
    result_.outcome = Outcome::Unplannable;
  } else if (diagnostics.has_errors()) {
    result_.outcome = Outcome::Failed;
    for (const Written& file : on_failure_) write_now(case_.op, file);
  }
}

}  // namespace loom::check
