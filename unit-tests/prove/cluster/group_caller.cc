#include "unit-tests/prove/cluster/group_caller.h"

#include <set>
#include <string_view>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr std::string_view kNone = "-";
constexpr size_t kKeysOfGroup = 3;
constexpr int64_t kLimit = 100;  // more than a group has

std::vector<std::string> KeysOf(const std::string& group) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeysOfGroup; ++i) keys.push_back(fmt::format("{}:{}", group, i));
  return keys;
}

// Returns whether the server has gone, between two calls or during one. Then a transaction that had
// begun is over, and its next call is told so.
bool HasGone(const absl::Status& status) {
  const std::string_view text(status.message().data(), status.message().size());
  return absl::IsUnavailable(status) || absl::IsUnknown(status) ||
         (absl::IsAborted(status) && text.find("the connection was lost") != text.npos);
}

}  // namespace

absl::Status GroupCaller::Run(Client* client) {
  const absl::Status used = client->Call({"NAMESPACE", "USE", kNamespace}).status();
  if (HasGone(used)) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(used);
  while (true) {
    operations_.push_back({});
    Operation& operation = operations_.back();
    const absl::Status status = CallOnce(client, &operation);
    if (status.ok()) {
      operation.done = HistoryNow();
    } else if (HasGone(status)) {
      return absl::OkStatus();
    } else {
      return absl::InternalError(operation.words + ": " + status.ToString());
    }
  }
}

void GroupCaller::Died(int64_t death) {
  if (operations_.empty() || operations_.back().done != 0) return;
  if (operations_.back().words.empty() || operations_.back().call >= death) {
    operations_.pop_back();  // it had written nothing
  } else {
    operations_.back().done = death;
  }
}

void GroupCaller::Write(std::vector<std::string>* lines) const {
  for (const Operation& operation : operations_) {
    lines->push_back(fmt::format("{} {} {} {} {}", id_, operation.call, operation.done,
                                 operation.words,
                                 operation.result.empty() ? "?" : operation.result));
  }
}

absl::Status GroupCaller::CallOnce(Client* client, Operation* operation) {
  const std::string group = fmt::format("g{}", random_() % groups_);
  const uint64_t draw = random_() % 100;
  operation->call = HistoryNow();
  if (draw < 40) {
    operation->words = "get " + group;
    VARVE_ASSIGN_OR_RETURN(operation->result, Read(client, group));
    return absl::OkStatus();
  }
  return draw < 70 ? Set(client, group, operation) : CompareAndSet(client, group, operation);
}

absl::StatusOr<std::string> GroupCaller::Read(Client* client, const std::string& group) {
  // With a limit, an I/O thread asks for the range; without one, a thread that may wait does.
  RangeQuery query;
  if (random_() % 2 == 0) query.limit = kLimit;
  VARVE_ASSIGN_OR_RETURN(const Client::Pairs pairs, client->Prefix(group + ":", query));
  if (pairs.empty()) return std::string(kNone);
  std::set<std::string> values;
  for (const auto& [key, value] : pairs) values.insert(value);
  if (pairs.size() == kKeysOfGroup && values.size() == 1) return *values.begin();
  return absl::DataLossError(fmt::format("the group is torn: {} keys", pairs.size()));
}

absl::Status GroupCaller::Set(Client* client, const std::string& group, Operation* operation) {
  const std::string number = fmt::format("{}", ++last_number_ * 1000 + id_ + 1);
  operation->words = fmt::format("set {} {}", group, number);
  const std::vector<std::string> keys = KeysOf(group);
  std::vector<std::string_view> request = {"MSET"};
  for (const std::string& key : keys) request.insert(request.end(), {key, number});
  VARVE_RETURN_IF_ERROR(client->Call(request).status());
  operation->result = "ok";
  return absl::OkStatus();
}

absl::Status GroupCaller::CompareAndSet(Client* client, const std::string& group,
                                        Operation* operation) {
  const std::vector<std::string> keys = KeysOf(group);
  VARVE_RETURN_IF_ERROR(client->Call({"WATCH", keys[0], keys[1], keys[2]}).status());
  VARVE_ASSIGN_OR_RETURN(const std::string expected, Read(client, group));
  VARVE_RETURN_IF_ERROR(client->Call({"MULTI"}).status());
  const std::string number = fmt::format("{}", ++last_number_ * 1000 + id_ + 1);
  for (const std::string& key : keys) {
    VARVE_RETURN_IF_ERROR(client->Call({"SET", key, number}).status());
  }
  operation->words = fmt::format("cas {} {} {}", group, expected, number);
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call({"EXEC"}));
  if (reply.is_null()) {
    // Another writer came after WATCH, maybe before the read: this was a read, and no more.
    operation->words = "get " + group;
    operation->result = expected;
  } else {
    operation->result = "1";
  }
  return absl::OkStatus();
}

}  // namespace varve::prove
