// The password that clients must give, if one is set.
//
// Thread-safety: all functions may be called on any thread; needed() takes no lock.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class Password {
 public:
  explicit Password(std::string password) { Set(std::move(password)); }

  // Sets the password; with an empty one clients need none.
  void Set(std::string password) ABSL_LOCKS_EXCLUDED(mutex_);
  bool needed() const { return needed_.load(std::memory_order_relaxed); }
  // Returns whether `given` is the password, or none is needed. The time that this takes depends
  // only on the length of `given`.
  bool Matches(std::string_view given) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::string password_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> needed_{false};
};

}  // namespace varve
