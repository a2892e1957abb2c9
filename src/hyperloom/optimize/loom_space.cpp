#include "hyperloom/optimize/loom_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hyperloom/optimize/config_axis.h"
#include "loom/api/inspect.h"
#include "loom/api/loom.h"
#include "loom/api/rewrites.h"
#include "loom/base/file.h"

namespace hyperloom::optimize {
namespace {

std::optional<int64_t> parse_integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Source {
  fs::path file;
  std::string text;
};

struct KeyChoice {
  std::string key;
  bool bound = false;  // outside of the sources
  size_t source = 0;   // that defines it
  unsigned line = 0;
};

struct RewriteChoice {
  std::string kernel;
  std::string name;
  std::string site;
  size_t source = 0;
};

// The number in "loop 3", 0 for other sites.
int64_t loop_of(const std::string& site) {
  return site.starts_with("loop ") ? parse_integer(site.substr(5)).value_or(0) : 0;
}

std::string text_of_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// What to try in place of `current`.
std::vector<std::string> options_of(const loom::api::ConfigKey& key, const std::string& current) {
  if (key.type == "i1") {
    if (current != "true" && current != "false") return {};
    return {current == "true" ? "false" : "true"};
  }
  const auto number = parse_integer(current);
  if (!number) return {};
  std::vector<std::string> options;
  for (const int64_t value : neighbours(*number, {.minimum = key.minimum,
                                                  .maximum = key.maximum,
                                                  .multiple_of = key.multiple_of,
                                                  .power_of_two = key.power_of_two})) {
    options.push_back(std::to_string(value));
  }
  return options;
}

class LoomSpace final : public Space {
 public:
  const std::vector<Axis>& axes() const override { return axes_; }

  Result<Change> change(const Point& point) const override {
    Change change;
    for (const size_t axis : order_) {
      if (point[axis] == 0) continue;
      const std::string& value = axes_[axis].options[point[axis]];
      const auto done = axis < keys_.size() ? set_key(change, axis, value)
                                            : rewrite(change, axis - keys_.size(), value);
      if (!done) return std::unexpected(done.error());
    }
    return change;
  }

  Result<void> read(const task::Context& context) {
    const fs::path tree = context.workload.tree();
    for (const fs::path& file : context.workload.files()) {
      if (file.extension() != ".loom") continue;
      auto text = loom::read_file((tree / file).string());
      if (!text) return fail("unreadable_file", text.error().path + ": " + text.error().reason);
      auto module = loom::api::Module::read(loom_, *text, file.string(), messages_);
      if (!module) return fail("invalid_source", first_message());
      sources_.push_back({file, std::move(*text)});
      modules_.push_back(std::move(*module));
    }
    bound_ = value_of(context.workload.describe(), "config");
    if (!bound_.is_object()) bound_ = Json::object();
    const Json best = context.state().get("current_best");
    if (const Json& kept = value_of(best, "extra_envs"); kept.is_object()) bound_.update(kept);
    return {};
  }

  void add_axes(const std::string& kernel) {
    const std::set<std::string> reached = reach(kernel);
    for (const auto& [source, key] : keys()) {
      if (kernel.empty() || reached.contains(key.key)) add_key(source, key);
    }
    for (size_t i = 0; i < modules_.size(); ++i) {
      for (const loom::api::Symbol& symbol : modules_[i].symbols()) {
        if (symbol.declaration || (!kernel.empty() && symbol.name != kernel)) continue;
        for (const loom::api::Rewrite& one : loom::api::list_rewrites(modules_[i], symbol.name)) {
          add_rewrite(i, symbol.name, one);
        }
      }
    }
    modules_.clear();
    put_in_order();
  }

 private:
  std::string first_message() const {
    for (const loom::api::Message& message : messages_.all()) {
      if (message.severity != loom::api::Message::Severity::Error) continue;
      return fmt::format("{}:{}:{}: {}", message.file, message.line, message.column, message.text);
    }
    return "a source does not verify";
  }

  // Every symbol that the kernel mentions, directly or not.
  std::set<std::string> reach(const std::string& kernel) const {
    std::map<std::string, std::vector<std::string>> mentions;
    for (const loom::api::Module& module : modules_) {
      for (const loom::api::Symbol& symbol : module.symbols()) {
        auto& list = mentions[symbol.name];
        list.insert(list.end(), symbol.references.begin(), symbol.references.end());
      }
    }
    std::set<std::string> reached = {kernel};
    for (std::deque<std::string> open = {kernel}; !open.empty(); open.pop_front()) {
      for (const std::string& name : mentions[open.front()]) {
        if (reached.insert(name).second) open.push_back(name);
      }
    }
    return reached;
  }

  // Each key once, with the value and the place of its definition, whichever file has that, and
  // with what every declaration of it demands.
  std::vector<std::pair<size_t, loom::api::ConfigKey>> keys() const {
    std::vector<std::pair<size_t, loom::api::ConfigKey>> all;
    std::map<std::string, size_t> known;
    for (size_t i = 0; i < modules_.size(); ++i) {
      for (loom::api::ConfigKey& key : loom::api::configuration(modules_[i])) {
        const auto [slot, fresh] = known.try_emplace(key.key, all.size());
        if (fresh) {
          all.emplace_back(i, std::move(key));
          continue;
        }
        auto& [source, one] = all[slot->second];
        if (key.value) {
          one.value = key.value;
          one.line = key.line;
          source = i;
        }
        if (key.minimum) one.minimum = std::max(one.minimum.value_or(*key.minimum), *key.minimum);
        if (key.maximum) one.maximum = std::min(one.maximum.value_or(*key.maximum), *key.maximum);
        one.multiple_of = std::lcm(one.multiple_of, key.multiple_of);
        one.power_of_two = one.power_of_two || key.power_of_two;
      }
    }
    return all;
  }

  void add_key(size_t source, const loom::api::ConfigKey& key) {
    const Json& binding = value_of(bound_, key.key);
    const bool bound = !binding.is_null();
    if (!bound && !key.value) return;
    const std::string current = bound ? text_of_value(binding) : *key.value;
    std::vector<std::string> options = options_of(key, current);
    if (options.empty()) return;
    options.insert(options.begin(), current);
    axes_.push_back({key.key, std::move(options)});
    keys_.push_back({key.key, bound, source, key.line});
  }

  void add_rewrite(size_t source, const std::string& kernel, const loom::api::Rewrite& one) {
    std::vector<std::string> options = {"as it is"};
    options.insert(options.end(), one.values.begin(), one.values.end());
    std::string name = fmt::format("{} @{}", one.name, kernel);
    if (!one.site.empty()) name += " " + one.site;
    axes_.push_back({std::move(name), std::move(options)});
    rewrites_.push_back({kernel, one.name, one.site, source});
  }

  // Keys before rewrites, which move lines; the last loop of a kernel before the first, so that the
  // numbers of those to come still hold; what concerns whole kernels in the end.
  void put_in_order() {
    order_.resize(axes_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::stable_sort(order_, {}, [&](size_t axis) {
      if (axis < keys_.size()) return std::pair<int, int64_t>(0, 0);
      const int64_t loop = loop_of(rewrites_[axis - keys_.size()].site);
      return loop > 0 ? std::pair<int, int64_t>(1, -loop) : std::pair<int, int64_t>(2, 0);
    });
  }

  Result<void> rewrite(Change& change, size_t number, const std::string& value) const {
    const RewriteChoice& choice = rewrites_[number];
    const Source& source = sources_[choice.source];
    auto& text = change.files.try_emplace(source.file, source.text).first->second;
    loom::api::Context context;
    loom::api::Messages messages(context);
    const auto module = loom::api::Module::read(context, text, source.file.string(), messages);
    if (!module) return fail("not_applicable", "the source does not verify: " + messages.text());
    auto changed =
        loom::api::apply_rewrite(*module, choice.kernel, choice.name, choice.site, value, messages);
    if (!changed) {
      return fail("not_applicable", fmt::format("{} @{} {} does not apply: {}", choice.name,
                                                choice.kernel, choice.site, messages.text()));
    }
    change.words.push_back(
        fmt::format("{} @{} {} by {}", choice.name, choice.kernel, choice.site, value));
    text = std::move(*changed);
    return {};
  }

  Result<void> set_key(Change& change, size_t axis, const std::string& value) const {
    const KeyChoice& choice = keys_[axis];
    change.words.push_back(choice.key + " = " + value);
    if (choice.bound) {
      change.envs[choice.key] = value;
      return {};
    }
    const Source& source = sources_[choice.source];
    auto& text = change.files.try_emplace(source.file, source.text).first->second;
    auto changed = replace_config_value(text, choice.line, choice.key, value);
    if (!changed) {
      return fail("not_applicable", fmt::format("{}:{}: the definition of @{} has another form",
                                                source.file.string(), choice.line, choice.key));
    }
    text = std::move(*changed);
    return {};
  }

  loom::api::Context loom_;
  loom::api::Messages messages_{loom_};
  std::vector<Source> sources_;
  std::vector<loom::api::Module> modules_;  // of the sources, until the axes are known
  Json bound_ = Json::object();
  std::vector<Axis> axes_;
  std::vector<KeyChoice> keys_;          // of the first axes
  std::vector<RewriteChoice> rewrites_;  // of the others
  std::vector<size_t> order_;            // in which the axes' choices are made
};

}  // namespace

Result<std::unique_ptr<Space>> open_loom_space(const task::Context& context,
                                               const std::string& kernel) {
  auto space = std::make_unique<LoomSpace>();
  if (auto read = space->read(context); !read) return std::unexpected(read.error());
  space->add_axes(kernel);
  return space;
}

}  // namespace hyperloom::optimize
