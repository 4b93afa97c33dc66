// The slow log holds the last requests that took long (SLOWLOG): the arguments, the client, and how
// long the executing thread worked on it. Waiting for the disk to make a write durable is not part
// of it, as no thread waits then.
//
// An entry is a few KiB at most: of arguments it keeps what is said below, a client's name has
// kMaxClientName, and its address is one of the system's.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/requests/request_batch.h"

namespace varve {

class SlowLog {
 public:
  static constexpr int64_t kDefaultThresholdMicros = 10'000;
  static constexpr size_t kDefaultMaxEntries = 128;
  // The limits of one entry; the last argument says how many are missing.
  static constexpr size_t kMaxArguments = 32;
  static constexpr size_t kMaxArgumentBytes = 128;  // of one argument; then how many are missing

  struct Entry {
    uint64_t id;
    int64_t unix_seconds;
    int64_t micros;
    std::vector<std::string> arguments;
    std::string client_address;
    std::string client_name;
  };

  // Returns, without a lock, whether a request that took `nanos` belongs here.
  bool Wants(uint64_t nanos) const {
    const int64_t threshold = threshold_micros_.load(std::memory_order_relaxed);
    return threshold >= 0 && static_cast<int64_t>(nanos / 1000) >= threshold;
  }
  void Add(uint64_t nanos, Arguments arguments, const std::string& client_address,
           const std::string& client_name);

  // The newest `count`, newest first.
  std::vector<Entry> Newest(size_t count) const;
  size_t size() const;
  void Clear();

  // 0: every request; negative: none.
  void set_threshold_micros(int64_t micros) { threshold_micros_.store(micros); }
  void set_max_entries(size_t entries);

 private:
  std::atomic<int64_t> threshold_micros_{kDefaultThresholdMicros};
  mutable absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // newest first
  size_t max_entries_ ABSL_GUARDED_BY(mutex_) = kDefaultMaxEntries;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
