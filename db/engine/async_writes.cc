#include "db/engine/async_writes.h"

#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {

void AsyncWrites::Write(absl::FunctionRef<absl::StatusOr<CommitResult>()> submit, Done done) {
  VARVE_ASSERT(done != nullptr);
  // A batch that is committed has its place already.
  Waiting place;
  if (!TryWithMemory(
          [&] { place.emplace(kNoSequence, std::make_pair(CommitResult{}, nullptr)); })) {
    return done(OutOfMemory("committing a batch"));
  }
  absl::StatusOr<CommitResult> result = submit();
  if (!result.ok()) return done(std::move(result));
  if (result->durable_after == kNoSequence) {
    const absl::Status pushed = log_->Push();
    return pushed.ok() ? done(std::move(result)) : done(pushed);
  }
  VARVE_ASSERT(result->durable_after <= result->sequence);
  {
    Waiting::node_type write = place.extract(place.begin());
    write.key() = result->durable_after;
    write.mapped() = {*result, std::move(done)};
    absl::MutexLock lock(&mutex_);
    waiting_.insert(std::move(write));
  }
  // A failed push reaches the function through the log's listener.
  if (!log_->Push().ok() || log_.durable_sequence() >= result->durable_after) Complete();
}

void AsyncWrites::Complete() {
  const SequenceNumber durable = log_.durable_sequence();
  const absl::Status log_status = log_->status();
  Waiting completed;
  {
    absl::MutexLock lock(&mutex_);
    const auto end = log_status.ok() ? waiting_.upper_bound(durable) : waiting_.end();
    while (waiting_.begin() != end)
      completed.insert(completed.end(), waiting_.extract(waiting_.begin()));
    VARVE_ASSERT(waiting_.empty() || (log_status.ok() && waiting_.begin()->first > durable));
  }
  for (auto& [durable_after, write] : completed) {
    auto& [result, done] = write;
    if (durable_after <= durable) {
      done(result);
    } else {
      VARVE_ASSERT(!log_status.ok());
      done(log_status);
    }
  }
}

}  // namespace varve
