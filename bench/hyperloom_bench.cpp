// Our side of suite `hyperloom`: messages through the coordinator's bus.
//
// usage: bench_hyperloom WORK_FOLDER BUDGET_MS
// Prints one JSON object: messages a second, each durable when append() returns.

#include "hyperloom/bus/bus.h"
#include "hyperloom/bus/database.h"
#include "messages.h"

namespace {

using hyperloom::bus::Bus;
using hyperloom::bus::Message;

Message message_of(int number) {
  Message message;
  message.from_agent = "orchestration";
  message.to_agent = "kernel_agent";
  message.topic = "request";
  message.payload = hyperloom::Json::parse(loom::bench::payload_text(number));
  return message;
}

// 0: it failed, or the log does not hold what was sent.
double send(const std::filesystem::path& folder, int messages) {
  const hyperloom::Environment environment(std::map<std::string, std::string>{});
  const auto database =
      hyperloom::bus::Database::open(folder / "storage" / "coordinator.db", environment);
  if (!database) return 0;
  Bus bus(*database);
  std::vector<Message> before(loom::bench::kBefore, message_of(0));
  if (!bus.append_all(std::move(before))) return 0;
  std::vector<Message> batch;
  for (int i = 0; i < messages; ++i) batch.push_back(message_of(i));
  const auto start = loom::bench::Clock::now();
  for (Message& message : batch) {
    if (!bus.append(std::move(message))) return 0;
  }
  const double seconds = loom::bench::nanoseconds_since(start) / 1e9;
  const auto last = bus.tail(1);
  const bool complete = last && last->size() == 1 &&
                        last->front().seq == loom::bench::kBefore + messages &&
                        last->front().payload == message_of(messages - 1).payload;
  return complete ? seconds : 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    fmt::print(stderr, "usage: bench_hyperloom WORK_FOLDER BUDGET_MS\n");
    return 2;
  }
  return loom::bench::measure_places(std::filesystem::path(arguments[1]) / "ours", send);
}
