// What a soak found wrong, and which refusals its clients were given.
//
// Thread-safety: any thread may use the object.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace varve::prove {

class Findings {
 public:
  // Notes what must not be; the first few are kept in words.
  void Add(std::string what) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes an error, if it is one.
  void AddStatus(std::string_view what, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts an error reply that the load may expect, by its first word.
  void CountRefusal(std::string_view reply) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts an error if it is the refusal of a write, and returns whether it is.
  bool CountIfRefused(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  bool any() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> Texts() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, uint64_t> Refusals() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> refusals_ ABSL_GUARDED_BY(mutex_);
};

// Returns whether the text of an error reply is the refusal of a write for max-disk-bytes, which
// ends by itself.
bool IsFullDirectory(std::string_view error);

}  // namespace varve::prove
