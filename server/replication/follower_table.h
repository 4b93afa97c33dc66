// The follower table knows the followers of this server: who they are, and up to which version each
// of them has what this server wrote. Replies that wait for followers, and the commands that ask
// about them, look here.
//
// A follower makes itself known when it connects, tells how far it has come whenever that changes,
// and at least once a second. One that was silent for a while has gone.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "varve/types.h"

namespace varve {

struct Follower {
  using Time = std::chrono::steady_clock::time_point;

  std::string id;                        // which it chose when its process began
  std::string address;                   // the host that it connects from
  uint16_t port = 0;                     // on which it serves; 0: it did not say
  SequenceNumber applied = kNoSequence;  // everything up to here can be read there
  SequenceNumber durable = kNoSequence;  // and is on its disk
  SequenceNumber sent = kNoSequence;     // everything up to here was sent to it
  bool online = false;  // it takes changes; else it is about to, or takes a copy of the store
  Time connected{};
  Time told{};  // when it was heard of last
};

class FollowerTable {
 public:
  using Time = Follower::Time;

  FollowerTable() = default;
  FollowerTable(const FollowerTable&) = delete;
  FollowerTable& operator=(const FollowerTable&) = delete;

  // Adds the follower, or replaces what is known of the one with its id. A follower that joins anew
  // has lost its link, and takes no copy any more: it may follow without one from now on.
  void Join(Follower follower) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes what the follower told. Returns false if nobody of this id has joined.
  bool Note(const std::string& id, SequenceNumber applied, SequenceNumber durable, Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteSent(const std::string& id, SequenceNumber sent) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that the follower takes changes, and in `*is_new` whether it begins to. Returns false if
  // nobody of this id has joined.
  bool Begin(const std::string& id, bool* is_new) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that the follower takes a copy of the store. Returns false if nobody of this id has
  // joined, or if another one takes a copy that was heard of since `since`.
  bool BeginCopy(const std::string& id, Time since) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndCopy(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the follower takes a copy; it was heard of at `now`.
  bool Copies(const std::string& id, Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has those leave who were silent since before `before`.
  void LeaveSilent(Time before) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all of them, ascending by id.
  std::vector<Follower> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Return how many followers have everything up to `version`, in memory or on disk.
  size_t CountApplied(SequenceNumber version) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t CountDurable(SequenceNumber version) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many followers take changes and were heard of since `since`.
  size_t CountGood(Time since) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the newest version that `count` followers have on disk; kNoSequence if there are fewer
  // followers. Requires: count > 0.
  SequenceNumber DurableOn(size_t count) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Has `listener` called, without a lock, after each change. Requires: it is set before followers
  // join.
  void OnChange(std::function<void()> listener) { listener_ = std::move(listener); }

 private:
  void Tell() const {
    if (listener_) listener_();
  }

  std::function<void()> listener_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Follower> followers_ ABSL_GUARDED_BY(mutex_);
  std::string copying_ ABSL_GUARDED_BY(mutex_);  // the id of the one that takes a copy; or empty
};

}  // namespace varve
