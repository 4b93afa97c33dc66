// The number of error replies by their code (INFO errorstats).
//
// Thread-safety: All threads may use it; errors are rare enough for a lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class ErrorStatistics {
 public:
  // `reply` as it is sent: "-CODE text".
  void Replied(std::string_view reply, uint64_t times = 1) {
    const std::string_view text = reply.substr(1, kLongestCode);
    const std::string_view code = text.substr(0, text.find_first_of(" \r\n"));
    absl::MutexLock lock(&mutex_);
    total_ += times;
    if (const auto known = by_code_.find(code); known != by_code_.end()) {
      known->second += times;
    } else if (by_code_.size() < kMaxCodes) {
      by_code_.emplace(code, times);
    }
  }
  uint64_t total() const {
    absl::MutexLock lock(&mutex_);
    return total_;
  }
  std::map<std::string, uint64_t, std::less<>> by_code() const {
    absl::MutexLock lock(&mutex_);
    return by_code_;
  }
  void Reset() {
    absl::MutexLock lock(&mutex_);
    total_ = 0;
    by_code_.clear();
  }

 private:
  static constexpr size_t kLongestCode = 32;
  static constexpr size_t kMaxCodes = 128;

  mutable absl::Mutex mutex_;
  uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, uint64_t, std::less<>> by_code_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
