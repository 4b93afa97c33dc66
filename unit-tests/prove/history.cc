#include "unit-tests/prove/history.h"

#include <signal.h>

#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "client/client.h"
#include "fmt/format.h"
#include "unit-tests/prove/caller.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/prove/feed_order.h"
#include "unit-tests/prove/feed_watcher.h"
#include "unit-tests/testing/server_process.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using testing::ServerProcess;

absl::Status OneLife(const HistoryOptions& options, const std::vector<std::string>& flags,
                     uint64_t millis, std::deque<Caller>* callers, FeedWatcher* feed) {
  ServerProcess server(options.server, options.directory + "/data", flags);
  if (server.port() == 0) return absl::InternalError("the server does not start: " + server.log());
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < options.clients; ++i) {
    VARVE_ASSIGN_OR_RETURN(clients.emplace_back(),
                           Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60)));
  }
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> reader,
                         Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60)));
  std::vector<absl::Status> ends(options.clients + 1);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.clients; ++i) {
    threads.emplace_back([&, i] { ends[i] = (*callers)[i].Run(clients[i].get()); });
  }
  threads.emplace_back([&] { ends.back() = feed->Run(reader.get()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(millis));
  server.process().Kill(SIGKILL);
  server.process().Wait();
  const int64_t death = HistoryNow();
  for (std::thread& thread : threads) thread.join();
  for (Caller& caller : *callers) caller.Died(death);
  for (const absl::Status& end : ends) VARVE_RETURN_IF_ERROR(end);
  return absl::OkStatus();
}

// Reads the rest of the feed from a server that nobody writes to.
absl::Status LastLife(const HistoryOptions& options, const std::vector<std::string>& flags,
                      FeedWatcher* feed) {
  ServerProcess server(options.server, options.directory + "/data", flags);
  if (server.port() == 0) return absl::InternalError("the server does not start: " + server.log());
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> reader,
                         Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60)));
  return feed->ReadToEnd(reader.get());
}

std::vector<std::string> FlagsOf(uint64_t life, std::mt19937_64* random) {
  std::vector<std::string> flags = SettingsOf(life, random);
  flags.push_back("--change-retention-bytes=1GiB");
  return flags;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RecordHistory(const HistoryOptions& options) {
  std::mt19937_64 random(options.seed);
  LastSeen seen(options.keys);
  std::deque<Caller> callers;
  for (size_t i = 0; i < options.clients; ++i) callers.emplace_back(i, options.seed, &seen);
  FeedWatcher feed;
  for (int life = 0; life <= options.kills; ++life) {
    VARVE_RETURN_IF_ERROR(OneLife(options,
                                  FlagsOf(static_cast<uint64_t>(life) + options.seed, &random),
                                  10 + random() % 120, &callers, &feed));
  }
  VARVE_RETURN_IF_ERROR(LastLife(options, FlagsOf(options.seed, &random), &feed));
  for (size_t key = 0; key < options.keys; ++key) {
    const std::string name = fmt::format("k{}", key);
    std::vector<FeedCall> calls;
    for (const Caller& caller : callers) caller.AddCalls(name, &calls);
    const absl::Status status = CheckFeedOrder(calls, feed.OrderOf(name));
    if (!status.ok()) return absl::InternalError(name + ": " + std::string(status.message()));
  }
  std::vector<std::string> lines;
  for (const Caller& caller : callers) caller.Write(&lines);
  return lines;
}

}  // namespace varve::prove
