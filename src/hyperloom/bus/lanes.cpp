#include "hyperloom/bus/lanes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "hyperloom/bus/holder.h"
#include "hyperloom/bus/sqlite.h"
#include "hyperloom/core/fault.h"

namespace hyperloom::bus {
namespace {

using Names = std::set<std::string>;

constexpr std::array<std::string_view, 7> kLanes = {
    "server_lifecycle", "workspace_mutation", "benchmark_lane", "profile_lane",
    "research_lane",    "gpu_research_lane",  "build_lane"};
// Each of these needs the device for itself.
constexpr std::array<std::string_view, 4> kExclusive = {"benchmark_lane", "profile_lane",
                                                        "server_lifecycle", "gpu_research_lane"};
// Another process may give something back without waking us.
constexpr auto kPoll = std::chrono::milliseconds(100);

// The lane and those that it excludes.
Names conflict_set(const std::string& lane) {
  if (std::ranges::find(kExclusive, lane) == kExclusive.end()) return {lane};
  return Names(kExclusive.begin(), kExclusive.end());
}

bool overlap(const Names& a, const Names& b) {
  return std::ranges::any_of(a, [&](const std::string& name) { return b.contains(name); });
}

enum class Table : uint8_t { Lanes, Devices };

// Frees what dead holders and failed releases left in one table. Inside a transaction.
Result<void> reclaim(Database::Impl& database, Table table) {
  std::vector<std::string> dead;
  {
    Query holders(database, table == Table::Lanes ? "SELECT DISTINCT holder_id FROM leases"
                                                  : "SELECT DISTINCT holder_id FROM gpu_leases");
    for (;;) {
      auto more = holders.step();
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
      std::string holder = holders.text(0);
      if (database.orphans.contains(holder) || is_dead(holder)) dead.push_back(std::move(holder));
    }
  }
  for (const std::string& holder : dead) {
    Query free(database, table == Table::Lanes ? "DELETE FROM leases WHERE holder_id = ?"
                                               : "DELETE FROM gpu_leases WHERE holder_id = ?");
    if (auto freed = free.bind(holder).run(); !freed) return freed;
  }
  return {};
}

Result<int64_t> count_of(Database::Impl& database, std::string_view sql, const std::string& name,
                         int64_t fallback) {
  Query query(database, sql);
  auto more = query.bind(name).step();
  if (!more) return std::unexpected(more.error());
  return *more ? query.integer(0) : fallback;
}

Result<void> insert_lane(Database::Impl& database, const std::string& lane,
                         const std::string& holder, const std::string& action) {
  const std::string now = utc_now();
  // No time ends a lease of this table: its holder gives it back, or has died.
  Query query(database, "INSERT INTO leases VALUES (?, ?, NULL, ?, ?, ?, NULL, ?)");
  return query.bind(lane).bind(holder).bind(action).bind(::getpid()).bind(now).bind(now).run();
}

// The holder of all lanes of the set, or why not. Needs the database's mutex to be free.
Result<std::string> take_lanes(Database::Impl& database, const std::string& lane,
                               const Names& lanes, const std::string& action) {
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (auto free = reclaim(database, Table::Lanes); !free) return std::unexpected(free.error());
  for (const std::string& name : lanes) {
    auto capacity =
        count_of(database, "SELECT capacity FROM lane_capacity WHERE lane = ?", name, 1);
    if (!capacity) return std::unexpected(capacity.error());
    auto held = count_of(database, "SELECT count(*) FROM leases WHERE lane = ?", name, 0);
    if (!held) return std::unexpected(held.error());
    if (*held < *capacity) continue;
    Query who(database, "SELECT action, holder_id FROM leases WHERE lane = ?");
    [[maybe_unused]] const auto row = who.bind(name).step();
    return fail(*capacity == 1 ? "lane_busy" : "lane_full",
                fmt::format("{} for {}: {} is held by {} ({})", lane, action, name, who.text(0),
                            who.text(1)));
  }
  std::string holder = new_holder(database);
  for (const std::string& name : lanes) {
    if (auto taken = insert_lane(database, name, holder, action); !taken) {
      return std::unexpected(taken.error());
    }
  }
  if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
  return holder;
}

Result<std::string> take_device(Database::Impl& database, const std::vector<std::string>& devices,
                                std::string& device) {
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (auto free = reclaim(database, Table::Devices); !free) return std::unexpected(free.error());
  for (const std::string& name : devices) {
    auto held = count_of(database, "SELECT count(*) FROM gpu_leases WHERE gpu_id = ?", name, 0);
    if (!held) return std::unexpected(held.error());
    if (*held != 0) continue;
    std::string holder = new_holder(database);
    const std::string now = utc_now();
    Query query(database, "INSERT INTO gpu_leases VALUES (?, ?, NULL, ?, NULL, ?)");
    if (auto taken = query.bind(name).bind(holder).bind(now).bind(now).run(); !taken) {
      return std::unexpected(taken.error());
    }
    if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
    device = name;
    return holder;
  }
  return fail("lane_busy", fmt::format("all of {} devices are leased", devices.size()));
}

// A place in the line of those who wait for any of `names`.
class Turn {
 public:
  Turn(Database::Impl& database, Names names) : database_(database) {
    const std::lock_guard lock(database_.mutex);
    at_ = database_.waiters.insert(database_.waiters.end(), {std::move(names)});
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const std::lock_guard lock(database_.mutex);
      database_.waiters.erase(at_);
    }
    database_.released.notify_all();
  }
  // Needs the mutex.
  bool is_first() {
    return std::none_of(database_.waiters.begin(), at_,
                        [&](const auto& earlier) { return overlap(earlier.names, at_->names); });
  }

 private:
  using Waiters = std::list<Database::Impl::Waiter>;
  Database::Impl& database_;
  Waiters::iterator at_;
};

// Tries whenever it is first in line and something may have been given back.
Result<std::string> wait_for(Database::Impl& database, const Names& names, const Deadline& deadline,
                             const std::stop_token& stop,
                             const std::function<Result<std::string>()>& take) {
  Turn turn(database, names);
  const std::stop_callback wake(stop, [&] { database.released.notify_all(); });
  for (;;) {
    if (stop.stop_requested()) return fail("cancelled", "stopped while waiting for a lane");
    bool first = false;
    {
      const std::lock_guard lock(database.mutex);
      first = turn.is_first();
    }
    std::string reason = "others wait before it";
    if (first) {
      auto taken = take();
      const bool busy = !taken && (taken.error().error_class == "lane_busy" ||
                                   taken.error().error_class == "lane_full");
      if (!busy) return taken;
      reason = taken.error().message;
    }
    if (deadline.passed()) return fail("lane_timeout", "no time left to wait: " + reason);
    std::unique_lock lock(database.mutex);
    database.released.wait_for(lock, kPoll);
  }
}

}  // namespace

struct Lease::Impl {
  std::shared_ptr<Database> database;
  Table table;
  std::string holder;

  ~Impl() {
    auto& base = database->impl();
    if (auto given_back = give_back(base); !given_back) {
      const std::lock_guard lock(base.mutex);
      base.orphans.insert(holder);
    }
    base.released.notify_all();
  }
  Result<void> give_back(Database::Impl& base) const {
    auto transaction = Transaction::begin(base);
    if (!transaction) return std::unexpected(transaction.error());
    Query free(base, table == Table::Lanes ? "DELETE FROM leases WHERE holder_id = ?"
                                           : "DELETE FROM gpu_leases WHERE holder_id = ?");
    if (auto freed = free.bind(holder).run(); !freed) return freed;
    return transaction->commit();
  }
};

Lease::Lease() = default;
Lease::Lease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

Lanes::Lanes(std::shared_ptr<Database> database) : database_(std::move(database)) {}

Result<Lease> Lanes::try_acquire(const std::string& lane, const std::string& action) {
  if (std::ranges::find(kLanes, lane) == kLanes.end()) {
    return fail("unknown_lane", fmt::format("there is no lane '{}'", lane));
  }
  fault_point("lane.acquire");
  auto holder = take_lanes(database_->impl(), lane, conflict_set(lane), action);
  if (!holder) return std::unexpected(holder.error());
  return Lease(std::make_unique<Lease::Impl>(database_, Table::Lanes, std::move(*holder)));
}

Result<Lease> Lanes::acquire(const std::string& lane, const std::string& action,
                             const Deadline& deadline, std::stop_token stop) {
  if (std::ranges::find(kLanes, lane) == kLanes.end()) {
    return fail("unknown_lane", fmt::format("there is no lane '{}'", lane));
  }
  fault_point("lane.acquire");
  const std::stop_token token = std::move(stop);
  auto& database = database_->impl();
  const Names names = conflict_set(lane);
  auto holder = wait_for(database, names, deadline, token,
                         [&] { return take_lanes(database, lane, names, action); });
  if (!holder) return std::unexpected(holder.error());
  return Lease(std::make_unique<Lease::Impl>(database_, Table::Lanes, std::move(*holder)));
}

Result<Lease> Lanes::acquire_device(const std::vector<std::string>& devices, std::string& device,
                                    const Deadline& deadline, std::stop_token stop) {
  if (devices.empty()) return fail("unknown_lane", "there is no device to lease");
  fault_point("lane.device");
  const std::stop_token token = std::move(stop);
  auto& database = database_->impl();
  Names names;
  for (const std::string& name : devices) names.insert("device " + name);
  auto holder = wait_for(database, names, deadline, token,
                         [&] { return take_device(database, devices, device); });
  if (!holder) return std::unexpected(holder.error());
  return Lease(std::make_unique<Lease::Impl>(database_, Table::Devices, std::move(*holder)));
}

}  // namespace hyperloom::bus
