#include "db/hbase_rpc/hbase_call.h"

#include <fmt/format.h>

namespace varve {
namespace {

// The attempts of a call have its deadline, too, and end just before it, so that it is known
// whether the last one was sent.
constexpr std::chrono::milliseconds kGrace{1};

std::string_view TextOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace

void HbaseCall::Begin() {
  const auto self = shared_from_this();
  environment_.calls.insert(self);
  timer_ = environment_.context.timers.At(deadline_ + kGrace, [this, self] {
    environment_.context.counters.missed_deadlines.fetch_add(1, std::memory_order_relaxed);
    const std::string why = trouble_.ok() ? "" : fmt::format(" ({})", TextOf(trouble_));
    GiveUp(absl::UnavailableError(
        fmt::format("HBase did not answer within the time that a command has{}", why)));
  });
  Start();
}

void HbaseCall::GiveUp(const absl::Status& why) {
  const auto self = shared_from_this();
  if (End()) AnswerUndone(why);
}

bool HbaseCall::End() {
  if (has_ended_) return false;
  has_ended_ = true;
  const auto waited = std::chrono::steady_clock::now() - begun_at_;
  environment_.context.counters.wait_nanos.fetch_add(
      static_cast<uint64_t>(std::chrono::nanoseconds(waited).count()), std::memory_order_relaxed);
  environment_.context.timers.Cancel(timer_);
  environment_.calls.erase(shared_from_this());
  return true;
}

bool HbaseCall::Ask(const RegionPtr& region, std::string_view method,
                    const google::protobuf::MessageLite& parameter, RpcConnection::Done then,
                    bool asks_others) {
  // A process may have stood still meanwhile. A write that is sent so late may no longer be one
  // that its caller wants, so nothing is sent any more; the timer ends the call.
  if (std::chrono::steady_clock::now() >= deadline_) return false;
  auto take = [this, self = shared_from_this(), region, asks_others,
               then = std::move(then)](const RpcResult& result) {
    if (!result.failure.has_value() && !asks_others) NoteAnswer(region);
    if (!has_ended_) return then(result);
    // Too late for this call; but the next one need not ask the same server in vain.
    if (!result.failure.has_value()) return;
    NoteFailure(*result.failure, region);
  };
  environment_.servers.Call(region->server, kClientService, method, parameter,
                            environment_.context.AttemptEnd(deadline_), std::move(take));
  return true;
}

void HbaseCall::NoteAnswer(const RegionPtr& region) {
  environment_.context.away.NoteAnswer(table_, *region);
}

void HbaseCall::Find(RegionQuery query, std::function<void(const RegionPtr& region)> then) {
  environment_.locator.Find(
      std::move(query), deadline_,
      [this, self = shared_from_this(), then = std::move(then)](absl::StatusOr<RegionPtr> region) {
        if (has_ended_) return;
        if (!region.ok()) return GiveUp(region.status());
        then(*region);
      });
}

void HbaseCall::FindAny(std::vector<std::string> rows, std::function<void()> then) {
  environment_.locator.FindAny(table_, std::move(rows), deadline_,
                               [this, self = shared_from_this(),
                                then = std::move(then)](const absl::StatusOr<RegionPtr>& region) {
                                 if (has_ended_) return;
                                 if (!region.ok()) return GiveUp(region.status());
                                 then();
                               });
}

void HbaseCall::NoteFailure(const HbaseFailure& failure, const RegionPtr& region) {
  if (failure.is_final() || region == nullptr) return;
  environment_.context.away.NoteFailure(table_, *region, std::chrono::steady_clock::now());
  if (failure.is_misplaced()) environment_.locator.Forget(table_, region);
}

void HbaseCall::TryLater(const HbaseFailure& failure, const RegionPtr& region, RetryPace& pace,
                         std::function<void()> again) {
  Note(failure.status);
  NoteFailure(failure, region);
  environment_.context.counters.retries.fetch_add(1, std::memory_order_relaxed);
  environment_.context.timers.At(std::chrono::steady_clock::now() + pace.Next(),
                                 [this, self = shared_from_this(), again = std::move(again)] {
                                   if (!has_ended_) again();
                                 });
}

}  // namespace varve
