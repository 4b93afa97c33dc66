// The skipped keys are what a Redis has and this store does not take: how many values and commands
// of each type, and the names of the first keys. The first of each type are logged.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class SkippedKeys {
 public:
  static constexpr size_t kNames = 100;         // that are kept
  static constexpr size_t kNamesPerType = 5;    // that are kept beyond that, and logged
  static constexpr size_t kMostNames = 1000;    // of all types, however many there are
  static constexpr size_t kLongestShown = 128;  // bytes of a name

  // Notes a value or a command of the type; `key` is empty where it has none.
  void Add(std::string_view type, std::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins anew.
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

  std::map<std::string, uint64_t> counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the first names, each once, as "hash user:1".
  std::vector<std::string> names() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> logged_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> known_ ABSL_GUARDED_BY(mutex_);  // those in names_
};

}  // namespace varve
