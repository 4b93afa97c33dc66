#include "db/hbase_rpc/each_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace varve {
namespace {

constexpr size_t kWritesAtATime = 512;
constexpr size_t kBytesAtATime = size_t{4} << 20;

absl::Status RowNotAsExpected() {
  return absl::AbortedError("the row does not hold what the write expects; nothing was written");
}

}  // namespace

void EachCall::Start() {
  Numbers all(writes_.size());
  std::iota(all.begin(), all.end(), 0);
  WriteAll(all, {kWritesAtATime, RetryPace()});
  EndIfDone();
}

void EachCall::AnswerUndone(const absl::Status& why) {
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].is_done) EndRowUnknown(i, why);
  }
  std::vector<absl::Status> statuses;
  statuses.reserve(states_.size());
  for (State& state : states_) statuses.push_back(std::move(state.status));
  done_(std::move(statuses));
}

void EachCall::WriteAll(const Numbers& numbers, const Manner& manner) {
  std::map<RegionPtr, Numbers> regions;
  Numbers unknown;
  for (const uint32_t number : numbers) {
    const RegionPtr region = environment().locator.FindKnown(table(), writes_[number].row);
    (region == nullptr ? unknown : regions[region]).push_back(number);
  }
  for (const auto& [region, rows] : regions) WriteRegion(region, rows, manner);
  if (unknown.empty()) return;
  std::vector<std::string> wanted;
  wanted.reserve(unknown.size());
  for (const uint32_t number : unknown) wanted.push_back(writes_[number].row);
  FindAny(std::move(wanted),
          [this, unknown = std::move(unknown), manner] { WriteAll(unknown, manner); });
}

void EachCall::WriteRegion(const RegionPtr& region, const Numbers& numbers, const Manner& manner) {
  Numbers commit;
  size_t bytes = 0;
  for (const uint32_t number : numbers) {
    const HbaseRowWrite& write = writes_[number];
    const size_t size = write.row.size() + write.value.size();
    const bool is_full = commit.size() >= manner.rows_at_a_time || bytes + size > kBytesAtATime;
    if (!commit.empty() && is_full) {
      Write(region, std::exchange(commit, Numbers()), manner);
      bytes = 0;
    }
    commit.push_back(number);
    bytes += size;
  }
  if (!commit.empty()) Write(region, commit, manner);
}

void EachCall::Write(const RegionPtr& region, const Numbers& numbers, const Manner& manner) {
  std::vector<const HbaseRowWrite*> writes;
  for (const uint32_t number : numbers) writes.push_back(&writes_[number]);
  const hbase::pb::CoprocessorServiceRequest request = MutateRowsRequest(*region, writes);
  const bool is_asked =
      Ask(region, "ExecService", request, [this, region, numbers, manner](const RpcResult& result) {
        TakeAnswer(region, numbers, manner, result);
        EndIfDone();
      });
  for (const uint32_t number : numbers) {
    const bool writes_row = writes_[number].kind != HbaseRowWrite::Kind::kCheckOnly;
    states_[number].is_under_way = is_asked && writes_row;
  }
}

void EachCall::TakeAnswer(const RegionPtr& region, const Numbers& numbers, const Manner& manner,
                          const RpcResult& result) {
  for (const uint32_t number : numbers) states_[number].is_under_way = false;
  if (result.failure.has_value()) return TakeFailure(region, numbers, manner, *result.failure);
  const std::optional<bool> is_written = ReadMutateRowsAnswer(result.message);
  if (!is_written.has_value()) {
    return TakeFailure(region, numbers, manner,
                       FailureOfGarbage("a damaged answer", region->server));
  }
  if (*is_written) {
    for (const uint32_t number : numbers) EndRow(number, absl::OkStatus());
    return;
  }
  if (numbers.size() == 1 && !states_[numbers.front()].may_have_happened) {
    return EndRow(numbers.front(), RowNotAsExpected());
  }
  const size_t at_a_time =
      manner.has_failed ? std::max<size_t>(numbers.size() / 2, 1) : numbers.size();
  LookAt(numbers, {at_a_time, manner.pace, /*has_failed=*/true});
}

void EachCall::TakeFailure(const RegionPtr& region, const Numbers& numbers, Manner manner,
                           const HbaseFailure& failure) {
  bool may_have_happened = false;
  for (const uint32_t number : numbers) {
    State& state = states_[number];
    state.may_have_happened |=
        failure.may_have_happened && writes_[number].kind != HbaseRowWrite::Kind::kCheckOnly;
    may_have_happened |= state.may_have_happened;
  }
  if (failure.is_final()) {
    if (numbers.size() == 1) return EndRowUnknown(numbers.front(), failure.status);
    // One of them may be the reason, and the others have nothing to do with it.
    manner.rows_at_a_time = 1;
  }
  TryLater(failure, region, manner.pace, [this, numbers, manner, may_have_happened] {
    may_have_happened ? LookAt(numbers, manner) : WriteAll(numbers, manner);
  });
}

void EachCall::LookAt(const Numbers& numbers, const Manner& manner) {
  ++looks_;
  LookOn(std::make_shared<Look>(Look{numbers, manner, ReadSteps(), 0, {}}));
}

// A look waits for no other one, whose region may be away, but they share what is read at a time.
void EachCall::LookOn(const std::shared_ptr<Look>& look) {
  if (look->read == look->numbers.size()) {
    --looks_;
    return WriteAll(look->left, look->manner);
  }
  const size_t most = std::max<size_t>(look->steps.rows() / looks_, 1);
  const size_t end = std::min(look->read + most, look->numbers.size());
  std::vector<std::string> rows;
  for (size_t i = look->read; i < end; ++i) rows.push_back(writes_[look->numbers[i]].row);
  const auto take = [this, self = shared_from_this(),
                     look](const std::vector<HbaseClient::RowValue>& values) {
    if (has_ended()) return;
    TakeValues(look.get(), values);
    LookOn(look);
    EndIfDone();
  };
  std::make_shared<ReadCall>(environment(), table(), std::move(rows), deadline(), take)->Begin();
}

void EachCall::TakeValues(Look* look, const std::vector<HbaseClient::RowValue>& values) {
  look->steps.Take(values);
  for (const HbaseClient::RowValue& value : values) {
    const uint32_t number = look->numbers[look->read++];
    const HbaseRowWrite& write = writes_[number];
    const bool may_have_happened = states_[number].may_have_happened;
    if (!value.ok()) {
      EndRowUnknown(number, value.status());
    } else if (may_have_happened && IsWritten(write, *value)) {
      EndRow(number, absl::OkStatus());
    } else if (IsExpected(write, *value) && (write.is_checked || !may_have_happened)) {
      look->left.push_back(number);
    } else if (may_have_happened && !IsTooLate(write, *value)) {
      EndRowUnknown(number, absl::UnavailableError("a server of HBase was lost over a write"));
    } else {
      EndRow(number, RowNotAsExpected());
    }
  }
}

void EachCall::EndRow(uint32_t number, const absl::Status& status) {
  State& state = states_[number];
  if (state.is_done) return;
  state.is_done = true;
  state.status = status;
  --undone_;
}

void EachCall::EndRowUnknown(uint32_t number, const absl::Status& why) {
  const std::string_view text(why.message().data(), why.message().size());
  const State& state = states_[number];
  const bool may_have_happened = state.may_have_happened || state.is_under_way;
  EndRow(number,
         absl::Status(why.code(), fmt::format("{}; {}", text, OutcomeText(may_have_happened))));
}

void EachCall::EndIfDone() {
  if (undone_ == 0 && End()) AnswerUndone(absl::OkStatus());
}

}  // namespace varve
