// IngestFiles holds the numbers of the segments of ingests that are under way. No Version names
// these files yet, and only their ingest removes them.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstdint>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class IngestFiles {
 public:
  // Notes that an ingest is about to make the segment.
  void Add(uint64_t number) {
    absl::MutexLock lock(&mutex_);
    numbers_.insert(number);
  }
  // Notes that the segment belongs to a Version, or is gone. Does nothing if it was not added.
  void Forget(uint64_t number) noexcept {
    absl::MutexLock lock(&mutex_);
    numbers_.erase(number);
  }
  std::set<uint64_t> Numbers() const {
    absl::MutexLock lock(&mutex_);
    return numbers_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::set<uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
