#include "db/hbase_rpc/commit_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "db/hbase_rpc/read_call.h"

namespace varve {
namespace {

using Kind = HbaseRowWrite::Kind;
using Values = std::vector<std::optional<std::string>>;

absl::Status NotAsExpected() {
  return absl::AbortedError("a row does not hold what the commit expects; nothing was written");
}

bool Writes(const HbaseRowWrite& write) { return write.kind != Kind::kCheckOnly; }

// Returns whether a second attempt fails where the first one comes through after all.
bool IsGuarded(const std::vector<HbaseRowWrite>& writes) {
  return std::any_of(writes.begin(), writes.end(),
                     [](const HbaseRowWrite& write) { return write.is_checked && Writes(write); });
}

bool AllExpected(const std::vector<HbaseRowWrite>& writes, const Values& values) {
  for (size_t i = 0; i < writes.size(); ++i) {
    if (!IsExpected(writes[i], values[i])) return false;
  }
  return true;
}

// Rows that were put tell whether the commit happened; where there are none, those that are gone.
bool ShowsWritten(const std::vector<HbaseRowWrite>& writes, const Values& values) {
  bool has_puts = false;
  bool has_deletes = false;
  bool all_deleted = true;
  for (size_t i = 0; i < writes.size(); ++i) {
    const bool is_written = IsWritten(writes[i], values[i]);
    if (writes[i].kind == Kind::kPut && is_written) return true;
    has_puts |= writes[i].kind == Kind::kPut;
    has_deletes |= writes[i].kind == Kind::kDelete;
    if (writes[i].kind == Kind::kDelete) all_deleted &= is_written;
  }
  return !has_puts && has_deletes && all_deleted;
}

}  // namespace

void CommitCall::AnswerUndone(const absl::Status& why) {
  done_(absl::Status(
      why.code(),
      fmt::format("{}; {}", std::string_view(why.message().data(), why.message().size()),
                  OutcomeText(may_have_happened_ || is_under_way_))));
}

void CommitCall::Attempt() {
  Find({table(), writes_.front().row, false}, [this](const RegionPtr& region) {
    const bool is_one_region =
        std::all_of(writes_.begin(), writes_.end(),
                    [&](const HbaseRowWrite& write) { return region->Holds(write.row); });
    if (is_one_region) return Commit(region);
    if (is_looked_up_again_) {
      return GiveUp(absl::FailedPreconditionError(
          "the rows of a commit lie in several regions of HBase, and none is atomic over two"));
    }
    is_looked_up_again_ = true;
    environment().locator.Forget(table(), region);
    Attempt();
  });
}

void CommitCall::Commit(const RegionPtr& region) {
  std::vector<const HbaseRowWrite*> writes;
  for (const HbaseRowWrite& write : writes_) writes.push_back(&write);
  const bool is_asked =
      Ask(region, "ExecService", MutateRowsRequest(*region, writes),
          [this, region](const RpcResult& result) { TakeAnswer(region, result); });
  is_under_way_ = is_asked && std::any_of(writes_.begin(), writes_.end(), Writes);
}

void CommitCall::TakeAnswer(const RegionPtr& region, const RpcResult& result) {
  std::optional<HbaseFailure> failure = result.failure;
  std::optional<bool> is_written;
  is_under_way_ = false;
  if (!failure.has_value()) {
    is_written = ReadMutateRowsAnswer(result.message);
    if (!is_written.has_value()) failure = FailureOfGarbage("a damaged answer", region->server);
  }
  if (failure.has_value()) {
    const bool writes = std::any_of(writes_.begin(), writes_.end(), Writes);
    may_have_happened_ |= failure->may_have_happened && writes;
    if (failure->is_final()) return GiveUp(failure->status);
    // The region may have been split.
    is_looked_up_again_ = false;
    return AttemptLater(*failure, region);
  }
  if (*is_written) return Answer(absl::OkStatus());
  if (may_have_happened_) return Look();
  Answer(NotAsExpected());
}

void CommitCall::AttemptLater(const HbaseFailure& failure, const RegionPtr& region) {
  TryLater(failure, region, pace_, [this] {
    if (may_have_happened_) return Look();
    Attempt();
  });
}

void CommitCall::Look() {
  std::vector<std::string> rows;
  for (const HbaseRowWrite& write : writes_) rows.push_back(write.row);
  const auto self = shared_from_this();
  const auto read = std::make_shared<ReadCall>(
      environment(), table(), std::move(rows), deadline(),
      [this, self](std::vector<HbaseClient::RowValue> found) {
        if (has_ended()) return;
        const absl::StatusOr<Values> values = AllOrNone(std::move(found));
        if (!values.ok()) return GiveUp(values.status());
        TakeValues(*values);
      });
  read->Begin();
}

void CommitCall::TakeValues(const Values& values) {
  if (ShowsWritten(writes_, values)) return Answer(absl::OkStatus());
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (IsTooLate(writes_[i], values[i])) return Answer(NotAsExpected());
  }
  if (AllExpected(writes_, values) && IsGuarded(writes_)) return Attempt();
  GiveUp(absl::UnavailableError("a server of HBase was lost over a commit"));
}

void CommitCall::Answer(const absl::Status& status) {
  if (End()) done_(status);
}

}  // namespace varve
