#include "db/commit/data_bound.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

// So much has to be written since the last count before keys are counted early.
constexpr uint64_t kEarlyCount = 16u << 20;

}  // namespace

uint64_t DataBound::Bound() const {
  const int64_t base = base_.load(std::memory_order_acquire);
  if (base == kUnknown) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(base + static_cast<int64_t>((*log_)->bytes_appended()));
}

bool DataBound::Fits(uint64_t more) const {
  const uint64_t limit = this->limit(), bound = Bound();
  return limit == 0 || (bound <= limit && more <= limit - bound);
}

DataCheck DataBound::Check(uint64_t more) const {
  const uint64_t limit = this->limit();
  if (limit == 0) return DataCheck::kWithin;
  // The sequence first: a later count makes `counted` newer than it, and the store as well.
  const SequenceNumber at = counted_at_.load(std::memory_order_acquire);
  const uint64_t counted = counted_.load(std::memory_order_acquire);
  const uint64_t bound = Bound();
  if (bound > limit) {
    const bool is_known = counted > limit && at == versions_->visible() && bound == counted;
    return is_known ? DataCheck::kOver : DataCheck::kMustCount;
  }
  if (more > limit - bound) return DataCheck::kMustCount;
  const uint64_t since = bound - std::min(counted, bound);
  const bool is_early = since > kEarlyCount && since > limit - bound;
  if (is_early && !counting_.load(std::memory_order_relaxed)) return DataCheck::kMustCount;
  return DataCheck::kWithin;
}

DataBound::Known DataBound::Read() const {
  const uint64_t counted = counted_.load(std::memory_order_acquire);
  const uint64_t bound = Bound();
  if (limit() == 0 || bound == std::numeric_limits<uint64_t>::max()) return {};
  // A count that ended in between may have lowered the bound.
  return {.counted = counted, .at_most = std::max(counted, bound)};
}

absl::StatusOr<uint64_t> DataBound::Count() {
  VARVE_RETURN_IF_ERROR(sweeper_->SweepAll());
  return CountNow();
}

absl::StatusOr<uint64_t> DataBound::CountNow() {
  const auto forgotten = [this] {
    absl::MutexLock lock(&mutex_);
    return forgotten_;
  };
  absl::MutexLock lock(&count_mutex_);
  counting_.store(true, std::memory_order_relaxed);
  const absl::Cleanup ended = [this] { counting_.store(false, std::memory_order_relaxed); };
  const uint64_t before = forgotten();
  // What is appended by now is visible before the count begins, which takes the commit lock.
  const uint64_t appended = (*log_)->bytes_appended();
  VARVE_ASSIGN_OR_RETURN(const KeyCounter::Counted all, counter_->CountAllNamespaces());
  VARVE_ASSERT(all.counts.bytes >= 0);
  absl::MutexLock findings(&mutex_);
  if (forgotten_ == before) {
    base_.store(all.counts.bytes - static_cast<int64_t>(appended), std::memory_order_release);
    counted_.store(static_cast<uint64_t>(all.counts.bytes), std::memory_order_release);
    counted_at_.store(all.at, std::memory_order_release);
  }
  return static_cast<uint64_t>(all.counts.bytes);
}

void DataBound::Forget() {
  absl::MutexLock lock(&mutex_);
  ++forgotten_;
  base_.store(kUnknown, std::memory_order_release);
}

}  // namespace varve
