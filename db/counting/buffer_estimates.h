// The buffer estimates say about what the write buffers add to each generation. Each call walks
// some of the records that arrived since the call before, so that no call takes long, and takes the
// others to be like those that were walked.
//
// Thread-safety: all threads may use an object at once; mutex_ is held over one walk in memory.
// Invariants: walked_ has at most one entry for each buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/format/key_counts.h"
#include "db/version/super_version.h"
#include "db/write_buffer/write_buffer.h"

namespace varve {

class BufferEstimates {
 public:
  // Records that one call walks at most.
  static constexpr uint64_t kMostWalked = 20'000;

  // Estimates what the buffers of `state` hold up to the sequence `visible`: a new key counts one,
  // a tombstone takes one away.
  GenerationKeyCounts Estimate(const SuperVersion& state, SequenceNumber visible)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Walked {
    std::weak_ptr<const WriteBuffer> buffer;
    WriteBuffer::Position position;
    SequenceNumber at = kNoSequence;
    uint64_t records = 0;
    GenerationKeyCounts counts;
  };

  Walked& WalkedOf(const std::shared_ptr<WriteBuffer>& buffer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Walk(const WriteBuffer& buffer, SequenceNumber last, Walked* walked);

  absl::Mutex mutex_;
  std::vector<Walked> walked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
