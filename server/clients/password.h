// The password that clients must give, if one is set.
//
// Thread-safety: All threads may use it; needed() takes no lock.
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

  // Empty: none is needed.
  void Set(std::string password) ABSL_LOCKS_EXCLUDED(mutex_);
  bool needed() const { return needed_.load(std::memory_order_relaxed); }
  // Takes a time that depends on the length of `given` alone. Any is right when none is needed.
  bool Matches(std::string_view given) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::string password_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> needed_{false};
};

}  // namespace varve
