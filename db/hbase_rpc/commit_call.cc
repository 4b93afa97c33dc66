#include "db/hbase_rpc/commit_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace varve {
namespace {

using WriteKind = HbaseRowWrite::Kind;

absl::Status NotAsExpected() {
  return absl::AbortedError("a row does not hold what the commit expects; nothing was written");
}

bool Writes(const HbaseRowWrite& write) { return write.kind != WriteKind::kCheckOnly; }

// Returns whether a second attempt fails where the first one comes through after all.
bool IsGuarded(const std::vector<HbaseRowWrite>& writes) {
  return std::any_of(writes.begin(), writes.end(),
                     [](const HbaseRowWrite& write) { return write.is_checked && Writes(write); });
}

bool Has(const std::vector<HbaseRowWrite>& writes, WriteKind kind) {
  return std::any_of(writes.begin(), writes.end(),
                     [kind](const HbaseRowWrite& write) { return write.kind == kind; });
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
  if (may_have_happened_) return Look({});
  Answer(NotAsExpected());
}

void CommitCall::AttemptLater(const HbaseFailure& failure, const RegionPtr& region) {
  TryLater(failure, region, pace_, [this] {
    if (may_have_happened_) return Look({});
    Attempt();
  });
}

void CommitCall::Look(const Findings& found) {
  const size_t end = std::min(found.rows + found.steps.rows(), writes_.size());
  std::vector<std::string> rows;
  for (size_t i = found.rows; i < end; ++i) rows.push_back(writes_[i].row);
  const auto take = [this, self = shared_from_this(),
                     found](const std::vector<HbaseClient::RowValue>& values) {
    if (!has_ended()) TakeValues(found, values);
  };
  std::make_shared<ReadCall>(environment(), table(), std::move(rows), deadline(), take)->Begin();
}

void CommitCall::TakeValues(Findings found, const std::vector<HbaseClient::RowValue>& values) {
  found.steps.Take(values);
  for (const HbaseClient::RowValue& value : values) {
    if (!value.ok()) return GiveUp(value.status());
    const HbaseRowWrite& write = writes_[found.rows++];
    const bool is_written = IsWritten(write, *value);
    found.has_put |= write.kind == WriteKind::kPut && is_written;
    found.all_deleted &= write.kind != WriteKind::kDelete || is_written;
    found.is_too_late |= IsTooLate(write, *value);
    found.all_expected &= IsExpected(write, *value);
  }
  if (!found.has_put && found.rows < writes_.size()) return Look(found);
  Conclude(found);
}

// Rows that were put tell whether the commit happened; where there are none, those that are gone.
void CommitCall::Conclude(const Findings& found) {
  const bool is_gone =
      !Has(writes_, WriteKind::kPut) && Has(writes_, WriteKind::kDelete) && found.all_deleted;
  if (found.has_put || is_gone) return Answer(absl::OkStatus());
  if (found.is_too_late) return Answer(NotAsExpected());
  if (found.all_expected && IsGuarded(writes_)) return Attempt();
  GiveUp(absl::UnavailableError("a server of HBase was lost over a commit"));
}

void CommitCall::Answer(const absl::Status& status) {
  if (End()) done_(status);
}

}  // namespace varve
