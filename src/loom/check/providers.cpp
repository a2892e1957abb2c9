#include "loom/check/providers.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/op_info.h"

namespace loom::check {
namespace {

using enum OpKind;

std::unexpected<std::string> refuse(std::string text) { return std::unexpected(std::move(text)); }

// The provider's name and its options.
struct Request {
  const Module& module;
  std::string_view provider;
  std::span<const DictEntry> options;

  Request(const Module& of, OpId op, unsigned provider_slot, unsigned options_slot) : module(of) {
    provider = module.strings.text(module.attr(op, provider_slot).string());
    if (module.has_attr(op, options_slot)) options = module.attr(op, options_slot).entries;
  }

  // The options are exactly the one called `key`.
  const Attr* only(std::string_view key) const {
    if (options.size() != 1 || module.strings.text(options[0].key) != key) return nullptr;
    return &module.attrs[options[0].value];
  }
  std::expected<std::string_view, std::string> text(std::string_view key) const {
    const Attr* value = only(key);
    if (value != nullptr && (value->kind == AttrKind::String || value->kind == AttrKind::Word)) {
      return module.strings.text(value->string());
    }
    return refuse(
        fmt::format("provider '{}' takes {{{} = \"...\"}} and nothing else", provider, key));
  }
  std::expected<uint64_t, std::string> number(std::string_view key) const {
    const Attr* value = only(key);
    if (value != nullptr && value->kind == AttrKind::Integer && value->value() >= 0) {
      return static_cast<uint64_t>(value->value());
    }
    return refuse(fmt::format("provider '{}' takes {{{} = N}} with N from 0 on and nothing else",
                              provider, key));
  }
  std::unexpected<std::string> unknown(std::initializer_list<std::string_view> known) const {
    std::string list;
    for (const std::string_view name : known)
      list += (list.empty() ? "" : ", ") + std::string(name);
    return refuse(fmt::format("there is no provider '{}'; known are {}", provider, list));
  }
};

std::expected<Event, std::string> sanitizer_kind(const Request& request) {
  const auto kind = request.text("kind");
  if (!kind) return std::unexpected(kind.error());
  if (*kind == "access") return Event::Access;
  if (*kind == "race") return Event::Race;
  return refuse(fmt::format("'{}' is no kind of sanitizer; known are access and race", *kind));
}

bool reports(const DeviceTraits& device, Event event) {
  switch (event) {
    case Event::Access:
      return device.reports_access;
    case Event::Race:
      return device.reports_race;
    case Event::Trap:
      return device.reports_traps;
  }
  return false;
}

}  // namespace

std::expected<bool, std::string> accepts(const Module& module, OpId op,
                                         const DeviceTraits& device) {
  static_assert(attr_slot(CheckRequires, "options") == attr_slot(CheckSkipIf, "options"));
  const Request request(module, op, attr_slot(CheckRequires, "provider"),
                        attr_slot(CheckRequires, "options"));
  if (request.provider == "device") {
    const auto name = request.text("name");
    if (!name) return std::unexpected(name.error());
    return *name == device.name;
  }
  if (request.provider == "device.memory") {
    const auto bytes = request.number("bytes");
    if (!bytes) return std::unexpected(bytes.error());
    return *bytes <= device.memory_bytes;
  }
  if (request.provider == "target.feature") {
    const auto name = request.text("name");
    if (!name) return std::unexpected(name.error());
    return std::ranges::find(device.features, *name) != device.features.end();
  }
  if (request.provider == "sanitizer") {
    const auto kind = sanitizer_kind(request);
    if (!kind) return std::unexpected(kind.error());
    return reports(device, *kind);
  }
  return request.unknown({"device", "device.memory", "target.feature", "sanitizer"});
}

std::expected<ComparisonRule, std::string> comparison_rule(const Module& module, OpId op) {
  const Request request(module, op, attr_slot(CheckExpect, "provider"),
                        attr_slot(CheckExpect, "options"));
  const bool ranking = request.provider == "ranking";
  if (!ranking && request.provider != "ulp") return request.unknown({"ranking", "ulp"});
  const auto number = request.number(ranking ? "top" : "most");
  if (!number) return std::unexpected(number.error());
  return ComparisonRule{ranking ? ComparisonRule::Kind::Ranking : ComparisonRule::Kind::Ulp,
                        *number};
}

std::expected<Event, std::string> expected_event(const Module& module, OpId op,
                                                 const DeviceTraits& device) {
  const Request request(module, op, attr_slot(CheckExpectEvent, "provider"),
                        attr_slot(CheckExpectEvent, "options"));
  Event event = Event::Trap;
  if (request.provider == "sanitizer.report") {
    const auto kind = sanitizer_kind(request);
    if (!kind) return std::unexpected(kind.error());
    event = *kind;
  } else if (request.provider != "trap") {
    return request.unknown({"sanitizer.report", "trap"});
  } else if (!request.options.empty()) {
    return refuse("provider 'trap' takes no options");
  }
  if (reports(device, event)) return event;
  return refuse(fmt::format("device {} does not report it as it runs here", device.name));
}

std::expected<std::string, std::string> oracle_name(const Module& module, OpId op,
                                                    const DeviceTraits& device) {
  const Request request(module, op, attr_slot(CheckOracleCall, "provider"),
                        attr_slot(CheckOracleCall, "options"));
  if (request.provider == "reference.scalar") {
    if (request.options.empty()) return std::string();
    return refuse("provider 'reference.scalar' takes no options");
  }
  if (request.provider != "external") return request.unknown({"reference.scalar", "external"});
  const auto name = request.text("name");
  if (!name) return std::unexpected(name.error());
  if (std::ranges::find(device.oracles, *name) != device.oracles.end()) return std::string(*name);
  return refuse(
      fmt::format("the external oracle '{}' is not available; name its command with "
                  "--oracle={}=COMMAND",
                  *name, *name));
}

}  // namespace loom::check
