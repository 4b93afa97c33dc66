#include "unit-tests/prove/history.h"

#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "client/client.h"
#include "fmt/format.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/prove/feed_order.h"
#include "unit-tests/prove/feed_watcher.h"
#include "unit-tests/testing/server_process.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using std::chrono::steady_clock;
using testing::ServerProcess;

constexpr size_t kPadding = 300;  // bytes behind each value's number, so that buffers fill up
constexpr std::string_view kNone = "-";

int64_t Now() { return steady_clock::now().time_since_epoch().count(); }

std::string ValueText(const std::string& number) {
  return number + ":" + std::string(kPadding, 'v');
}

// One operation: the reply, or nothing when it was lost.
struct Operation {
  int64_t call = 0;
  int64_t done = 0;
  std::string words;   // kind, key and arguments
  std::string result;  // empty: unknown
  std::string key;
  FeedCall feed;  // its kind and values
};

// What all clients may know: the value that somebody saw last.
struct LastSeen {
  std::vector<std::atomic<uint64_t>> values;  // by key; 0: none
};

class Caller {
 public:
  Caller(size_t id, const HistoryOptions& options, LastSeen* seen)
      : id_(id), keys_(options.keys), random_(options.seed * 1000 + id), seen_(seen) {}

  // Calls until the connection is lost; the operation under way then stays without a result.
  // Internal: an answer that must not be.
  absl::Status Run(Client* client) {
    while (true) {
      operations_.push_back({});
      Operation& operation = operations_.back();
      const absl::Status status = CallOnce(client, &operation);
      if (status.ok()) {
        operation.done = Now();
      } else if (absl::IsUnavailable(status) || absl::IsUnknown(status)) {
        if (operation.call == 0) operations_.pop_back();
        return absl::OkStatus();
      } else {
        return absl::InternalError(operation.words + ": " + status.ToString());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400));
    }
  }

  // Whatever was under way took effect before `death`, or never.
  void Died(int64_t death) {
    if (operations_.empty() || operations_.back().done != 0) return;
    if (operations_.back().call >= death) {
      operations_.pop_back();  // called into the void
    } else {
      operations_.back().done = death;
    }
  }

  // Adds the calls for the key.
  void AddCalls(const std::string& key, std::vector<FeedCall>* calls) const {
    for (const Operation& operation : operations_) {
      if (operation.key != key) continue;
      FeedCall call = operation.feed;
      call.call = operation.call;
      call.done = operation.done;
      call.result = operation.result == "ok" ? "1" : operation.result;
      calls->push_back(std::move(call));
    }
  }

  void Write(std::vector<std::string>* lines) const {
    for (const Operation& operation : operations_) {
      lines->push_back(fmt::format("{} {} {} {} {}", id_, operation.call, operation.done,
                                   operation.words,
                                   operation.result.empty() ? "?" : operation.result));
    }
  }

 private:
  absl::Status CallOnce(Client* client, Operation* operation) {
    const size_t key = random_() % keys_;
    const std::string name = fmt::format("k{}", key);
    const uint64_t kind = random_() % 100;
    if (kind < 35) return Get(client, key, name, operation);
    if (kind < 60) return Set(client, name, operation);
    if (kind < 70) return Delete(client, name, operation);
    return CompareAndSet(client, name, seen_->values[key].load(), operation);
  }

  absl::Status Get(Client* client, size_t key, const std::string& name, Operation* operation) {
    operation->words = "get " + name;
    operation->key = name;
    operation->call = Now();
    VARVE_ASSIGN_OR_RETURN(const std::optional<std::string> value, client->Get(name));
    const std::string number =
        value.has_value() ? value->substr(0, value->find(':')) : std::string();
    if (value.has_value() && *value != ValueText(number))
      return absl::DataLossError("a value that nobody wrote");
    seen_->values[key] = number.empty() ? 0 : std::stoull(number);
    operation->result = value.has_value() ? number : std::string(kNone);
    return absl::OkStatus();
  }

  absl::Status Set(Client* client, const std::string& name, Operation* operation) {
    const std::string number = NewNumber();
    operation->words = fmt::format("set {} {}", name, number);
    operation->key = name;
    operation->feed = {.kind = FeedCall::Kind::kSet, .written = number};
    operation->call = Now();
    VARVE_RETURN_IF_ERROR(client->Call({"SET", name, ValueText(number)}).status());
    operation->result = "ok";
    return absl::OkStatus();
  }

  absl::Status Delete(Client* client, const std::string& name, Operation* operation) {
    operation->words = "del " + name;
    operation->key = name;
    operation->feed.kind = FeedCall::Kind::kDelete;
    operation->call = Now();
    VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call({"DEL", name}));
    operation->result = fmt::format("{}", reply.integer);
    return absl::OkStatus();
  }

  absl::Status CompareAndSet(Client* client, const std::string& name, uint64_t seen,
                             Operation* operation) {
    const std::string number = NewNumber();
    const std::string expected = seen == 0 ? std::string(kNone) : fmt::format("{}", seen);
    operation->words = fmt::format("cas {} {} {}", name, expected, number);
    operation->key = name;
    operation->feed = {
        .kind = FeedCall::Kind::kCompareAndSet, .written = number, .expected = expected};
    const std::string value = ValueText(number), there = ValueText(expected);
    std::vector<std::string_view> request = {"SET", name, value};
    if (seen == 0) {
      request.emplace_back("NX");
    } else {
      request.insert(request.end(), {"IFEQ", there});
    }
    operation->call = Now();
    VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call(request));
    operation->result = reply.is_null() ? "0" : "1";
    return absl::OkStatus();
  }

  std::string NewNumber() { return fmt::format("{}", ++last_number_ * 1000 + id_ + 1); }

  const size_t id_;
  const size_t keys_;
  std::mt19937_64 random_;
  LastSeen* const seen_;
  uint64_t last_number_ = 0;
  std::vector<Operation> operations_;
};

absl::Status OneLife(const HistoryOptions& options, const std::vector<std::string>& flags,
                     uint64_t millis, std::vector<Caller>* callers, FeedWatcher* feed) {
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
  const int64_t death = Now();
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
  LastSeen seen{std::vector<std::atomic<uint64_t>>(options.keys)};
  std::vector<Caller> callers;
  for (size_t i = 0; i < options.clients; ++i) callers.emplace_back(i, options, &seen);
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
