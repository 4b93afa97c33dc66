#include "unit-tests/prove/caller.h"

#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr size_t kPadding = 300;  // bytes behind each value's number, so that buffers fill up
constexpr std::string_view kNone = "-";

std::string ValueText(const std::string& number) {
  return number + ":" + std::string(kPadding, 'v');
}

// Nothing was done, as the server follows another one.
bool IsNoPrimary(const absl::Status& status) {
  const absl::string_view text = status.message();
  return absl::StartsWith(text, "READONLY") || absl::StartsWith(text, "MASTERDOWN");
}

}  // namespace

int64_t HistoryNow() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

absl::Status Caller::Run(Client* client) {
  while (true) {
    operations_.push_back({});
    Operation& operation = operations_.back();
    const absl::Status status = CallOnce(client, &operation);
    if (status.ok()) {
      operation.done = HistoryNow();
      if (operation.is_acknowledged_write()) ++acknowledged_;
    } else if (absl::IsUnavailable(status) || absl::IsUnknown(status)) {
      return absl::OkStatus();
    } else if (IsNoPrimary(status)) {
      operations_.pop_back();
      return absl::OkStatus();
    } else {
      return absl::InternalError(operation.words + ": " + status.ToString());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 400));
  }
}

void Caller::OnlySets() {
  absl::MutexLock lock(&mutex_);
  only_sets_ = true;
}

void Caller::Died(int64_t death) {
  absl::MutexLock lock(&mutex_);
  only_sets_ = false;
  if (operations_.empty() || operations_.back().done != 0) return;
  if (operations_.back().call >= death) {
    operations_.pop_back();  // called into the void
  } else {
    operations_.back().done = death;
  }
}

void Caller::AddCalls(const std::string& key, std::vector<FeedCall>* calls) const {
  for (const Operation& operation : operations_) {
    if (operation.key != key) continue;
    FeedCall call = operation.feed;
    call.call = operation.call;
    call.done = operation.done;
    call.result = operation.result == "ok" ? "1" : operation.result;
    calls->push_back(std::move(call));
  }
}

void Caller::Write(std::vector<std::string>* lines) const {
  for (const Operation& operation : operations_) {
    lines->push_back(fmt::format("{} {} {} {} {}", id_, operation.call, operation.done,
                                 operation.words,
                                 operation.result.empty() ? "?" : operation.result));
  }
}

Caller::Kind Caller::Begin(Operation* operation) {
  const uint64_t draw = random_() % 100;
  absl::MutexLock lock(&mutex_);
  operation->call = HistoryNow();
  if (only_sets_ || kind_ == CallerKind::kOwnKeys) return Kind::kSet;
  if (draw < 35) return Kind::kGet;
  if (draw < 60) return Kind::kSet;
  return draw < 70 ? Kind::kDelete : Kind::kCompareAndSet;
}

absl::Status Caller::CallOnce(Client* client, Operation* operation) {
  const size_t key = random_() % seen_->values.size();
  operation->key = fmt::format("k{}", key);
  switch (Begin(operation)) {
    case Kind::kGet:
      return Get(client, key, operation);
    case Kind::kSet:
      return Set(client, operation);
    case Kind::kDelete:
      return Delete(client, operation);
    case Kind::kCompareAndSet:
      break;
  }
  return CompareAndSet(client, seen_->values[key].load(), operation);
}

absl::Status Caller::Get(Client* client, size_t key, Operation* operation) {
  operation->words = "get " + operation->key;
  VARVE_ASSIGN_OR_RETURN(const std::optional<std::string> value, client->Get(operation->key));
  const std::string number = value.has_value() ? value->substr(0, value->find(':')) : std::string();
  if (value.has_value() && *value != ValueText(number))
    return absl::DataLossError("a value that nobody wrote");
  seen_->values[key] = number.empty() ? 0 : std::stoull(number);
  operation->result = value.has_value() ? number : std::string(kNone);
  return absl::OkStatus();
}

absl::Status Caller::Set(Client* client, Operation* operation) {
  const std::string number = NewNumber();
  if (kind_ == CallerKind::kOwnKeys) operation->key = "w" + number;
  operation->words = fmt::format("set {} {}", operation->key, number);
  operation->feed = {.kind = FeedCall::Kind::kSet, .written = number};
  VARVE_RETURN_IF_ERROR(client->Call({"SET", operation->key, ValueText(number)}).status());
  operation->result = "ok";
  return absl::OkStatus();
}

absl::Status Caller::Delete(Client* client, Operation* operation) {
  operation->words = "del " + operation->key;
  operation->feed.kind = FeedCall::Kind::kDelete;
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call({"DEL", operation->key}));
  operation->result = fmt::format("{}", reply.integer);
  return absl::OkStatus();
}

absl::Status Caller::CompareAndSet(Client* client, uint64_t seen, Operation* operation) {
  const std::string number = NewNumber();
  const std::string expected = seen == 0 ? std::string(kNone) : fmt::format("{}", seen);
  operation->words = fmt::format("cas {} {} {}", operation->key, expected, number);
  operation->feed = {
      .kind = FeedCall::Kind::kCompareAndSet, .written = number, .expected = expected};
  const std::string value = ValueText(number), there = ValueText(expected);
  std::vector<std::string_view> request = {"SET", operation->key, value};
  if (seen == 0) {
    request.emplace_back("NX");
  } else {
    request.insert(request.end(), {"IFEQ", there});
  }
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call(request));
  operation->result = reply.is_null() ? "0" : "1";
  return absl::OkStatus();
}

std::string Caller::NewNumber() { return fmt::format("{}", ++last_number_ * 1000 + id_ + 1); }

}  // namespace varve::prove
