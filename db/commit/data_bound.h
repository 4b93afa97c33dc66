// The data bound knows how many bytes the keys and values of all namespaces have at most, and the
// limit that they have. Like the quotas of namespaces (db/commit/quotas.h), which enforce the
// limit, it adds to the last count all that was written since, as if each key was new; when the sum
// passes the limit, keys have to be counted (db/counting/key_counter.h).
//
// What was written since is what the log appended since: a record has all bytes of the keys and
// values in it. A clone adds keys that no record has, so it makes the bound unknown.
//
// Writers pay nothing for the bound: a count takes the log's figure and the sequence that it holds
// for, and a question compares.
//
// Thread-safety: all functions may be called on any thread. count_mutex_ is held across I/O and is
// acquired before the key counter's and the commit lock.
// Invariants: the store holds at most base_ + the log's appended bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/counting/key_counter.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/store.h"

namespace varve {

class DataBound {
 public:
  // All parts outlive the bound.
  DataBound(SuperVersions* versions, LogView* log, KeyCounter* counter, ExpirySweeper* sweeper)
      : versions_(versions), log_(log), counter_(counter), sweeper_(sweeper) {}

  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  // Sets the limit; 0: none.
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  // Returns whether the bound is within the limit also when `more` bytes are added.
  bool Fits(uint64_t more) const;
  // As StoreUpkeep::CheckData(). It asks for a count well before the bound reaches the limit, so
  // that writers can go on meanwhile.
  DataCheck Check(uint64_t more) const;
  // The figures are zero without a limit, before the first count, and after a clone until the next
  // one.
  struct Known {
    uint64_t counted = 0;  // by the last count
    uint64_t at_most = 0;  // now
  };
  Known Read() const;
  // Counts the bytes of all namespaces, after it has removed what has expired.
  [[nodiscard]] absl::StatusOr<uint64_t> Count() ABSL_LOCKS_EXCLUDED(count_mutex_);
  // Counts the bytes of all namespaces, with what has expired.
  [[nodiscard]] absl::StatusOr<uint64_t> CountNow() ABSL_LOCKS_EXCLUDED(count_mutex_);
  // Notes that a namespace was cloned.
  void Forget() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

  // Returns the bound; UINT64_MAX: it is unknown.
  uint64_t Bound() const;

  SuperVersions* const versions_;
  LogView* const log_;
  KeyCounter* const counter_;
  ExpirySweeper* const sweeper_;

  std::atomic<uint64_t> limit_{0};
  absl::Mutex count_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // one count at a time
  std::atomic<bool> counting_{false};
  absl::Mutex mutex_;  // the findings change together
  uint64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<int64_t> base_{kUnknown};
  std::atomic<uint64_t> counted_{0};  // bytes
  // The last sequence of the last count.
  std::atomic<SequenceNumber> counted_at_{kNoSequence};
};

}  // namespace varve
