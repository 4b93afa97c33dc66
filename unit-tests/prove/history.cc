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
    operation->call = Now();
    VARVE_RETURN_IF_ERROR(client->Call({"SET", name, ValueText(number)}).status());
    operation->result = "ok";
    return absl::OkStatus();
  }

  absl::Status Delete(Client* client, const std::string& name, Operation* operation) {
    operation->words = "del " + name;
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
                     uint64_t millis, std::vector<Caller>* callers) {
  ServerProcess server(options.server, options.directory + "/data", flags);
  if (server.port() == 0) return absl::InternalError("the server does not start: " + server.log());
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < options.clients; ++i) {
    VARVE_ASSIGN_OR_RETURN(clients.emplace_back(),
                           Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60)));
  }
  std::vector<absl::Status> ends(options.clients);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.clients; ++i) {
    threads.emplace_back([&, i] { ends[i] = (*callers)[i].Run(clients[i].get()); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(millis));
  server.process().Kill(SIGKILL);
  server.process().Wait();
  const int64_t death = Now();
  for (std::thread& thread : threads) thread.join();
  for (Caller& caller : *callers) caller.Died(death);
  for (const absl::Status& end : ends) VARVE_RETURN_IF_ERROR(end);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RecordHistory(const HistoryOptions& options) {
  std::mt19937_64 random(options.seed);
  LastSeen seen{std::vector<std::atomic<uint64_t>>(options.keys)};
  std::vector<Caller> callers;
  for (size_t i = 0; i < options.clients; ++i) callers.emplace_back(i, options, &seen);
  for (int life = 0; life <= options.kills; ++life) {
    VARVE_RETURN_IF_ERROR(OneLife(options,
                                  SettingsOf(static_cast<uint64_t>(life) + options.seed, &random),
                                  10 + random() % 120, &callers));
  }
  std::vector<std::string> lines;
  for (const Caller& caller : callers) caller.Write(&lines);
  return lines;
}

}  // namespace varve::prove
