// The time map translates between versions and instants: it knows when the writes of a store were
// committed, to the second.
//
// A mark (first, instant) says that every write from the sequence `first` on was committed at
// `instant_ms` or later. The commit pipeline makes a mark ahead of a commit when the last one is a
// second old, so a store that is written to all the time gains 16 bytes a second, and one that
// rests gains nothing. The log holds each mark ahead of the batch that it was made for
// (db/format/batch_codec.h), and db/history/time_file.h keeps those of flushed batches.
//
// The instant of a version is that of the last mark at or before it. It is never later than the
// commit, and less than a second earlier while no mark was thinned out. Marks below the horizon,
// where nobody reads the past, are thinned out to one a minute.
//
// Thread-safety: all functions may be called on any thread.
// Invariants: sequences and instants ascend strictly from mark to mark, whatever the clock does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/format/time_mark.h"
#include "varve/types.h"

namespace varve {

class TimeMap {
 public:
  static constexpr uint64_t kMarkEveryMillis = 1000;
  static constexpr uint64_t kThinnedMillis = 60'000;

  // Has commits make marks from now on. A store whose format has no place for marks never calls it.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  bool started() const { return next_mark_ms_.load(std::memory_order_relaxed) != kNever; }
  // Returns whether a commit at `now_ms` needs a mark ahead of it. A clock that steps back makes no
  // marks until it has come past the last one.
  bool NeedsMark(uint64_t now_ms) const {
    return now_ms >= next_mark_ms_.load(std::memory_order_relaxed);
  }
  // Takes the memory for one more mark, so that the next Add() cannot fail. Throws std::bad_alloc.
  void Reserve() ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the mark if both of its numbers are above those of the last one: a restart may bring a
  // mark twice. Throws std::bad_alloc if there was no Reserve().
  void Add(const TimeMark& mark) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the instant of the version; nothing if it is older than the first mark.
  std::optional<uint64_t> InstantOf(SequenceNumber version) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the oldest version whose instant is known, if there is one.
  std::optional<SequenceNumber> FirstVersion() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the newest version whose instant is `instant_ms` or earlier, if marks tell: the one
  // before the first later mark, or `newest` if there is no later mark. Returns nothing if
  // `instant_ms` is before the first mark.
  std::optional<SequenceNumber> VersionAt(uint64_t instant_ms, SequenceNumber newest) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the marks behind the sequence `after` and up to `last`.
  std::vector<TimeMark> MarksBetween(SequenceNumber after, SequenceNumber last) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Thins out the marks of versions up to `horizon`. Returns how many went.
  size_t ThinUpTo(SequenceNumber horizon) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  std::atomic<uint64_t> next_mark_ms_{kNever};
  mutable absl::Mutex mutex_;
  std::vector<TimeMark> marks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
