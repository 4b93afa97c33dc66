// The log keeps what was denied, for ACL LOG: newest first. Alike denials within a minute are one
// entry with a count.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class AclLog {
 public:
  struct Entry {
    uint64_t count = 1;
    std::string reason;   // "auth", "command", "key", "channel", "database"
    std::string context;  // "toplevel", "multi"
    std::string object;
    std::string username;
    std::string client;  // a line of CLIENT LIST
    uint64_t id = 0;
    int64_t created_ms = 0;  // since 1970
    int64_t updated_ms = 0;
  };
  // A denial like the newest in the same minute counts with it.
  static constexpr int64_t kGroupMs = 60'000;

  // Adds what `entry` tells but its count and id; created_ms is now.
  void Add(Entry entry) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the newest entries.
  std::vector<Entry> Newest(size_t count) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);
  void set_max_entries(size_t entries) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  size_t max_entries_ ABSL_GUARDED_BY(mutex_) = 128;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
