// A reader of the change feed that makes up from it what the server holds, commit by commit, and
// knows of every commit what the state was behind it. It acknowledges its place, gives its
// connection up now and then, and goes on from that place.
//
// It finds a change that comes twice, late or not at all: versions ascend, each counter goes up by
// one, the numbers of each owner's values ascend, and whoever compares the sum of the state with
// that of a server finds the rest.
//
// Thread-safety: one thread runs the mirror; any thread may ask it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "unit-tests/prove/soak/findings.h"

namespace varve::prove {

// What went by.
struct FeedFigures {
  uint64_t commits = 0;
  uint64_t operations = 0;
  uint64_t evicted = 0;
  uint64_t expired = 0;
  uint64_t connections = 0;
  uint64_t longest_commit = 0;  // in operations
};

// The state behind a commit.
struct StateAt {
  int64_t version = 0;
  uint64_t sum = 0;      // of all namespaces that count
  uint64_t history = 0;  // of the records in the namespace whose past is read
};

class FeedMirror {
 public:
  struct Options {
    std::string feed;                // where its place is kept
    std::string history;             // the namespace whose past is read, and which has counters
    std::set<std::string> left_out;  // namespaces that do not count, as their keys expire
    std::set<std::string> may_evict;
  };

  // Requires: `findings` outlives the mirror.
  FeedMirror(Options options, Findings* findings);

  // Makes the feed. From here on every change is mirrored. Requires: the server holds no keys.
  absl::Status Open(uint16_t port);
  // Reads until `ended`, or until something is wrong.
  void Run(uint16_t port, const absl::Notification& ended) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything up to this version was read.
  int64_t position() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until everything up to the version was read; false: it does not come to that.
  bool AwaitVersion(int64_t version) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the state behind the newest commit at or before the version; nothing if that is not
  // known any more. Requires: position() has reached the version.
  std::optional<StateAt> At(int64_t version) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the newest state.
  StateAt Now() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the sum of the records in a namespace.
  uint64_t RecordsOf(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many values of the owner came by, and how many of a namespace's keys were deleted.
  uint64_t SetsOf(int owner) const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t DeletesIn(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  FeedFigures figures() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Place {
    std::map<std::string, uint64_t, std::less<>> records;  // the sum of each, by key
    uint64_t sum = 0;
    uint64_t deletes = 0;
  };
  struct Owner {
    uint64_t last = 0;
    uint64_t sets = 0;
  };

  absl::Status ReadSome(Client* client) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Acknowledge(Client* client) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the server keeps the place that was acknowledged last.
  absl::Status CheckPlace(Client* client);
  absl::Status Take(const Reply& commit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeOperation(const Reply& operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeSet(const std::string& name, const std::string& key, const std::string& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeRemoval(std::string_view what, const std::string& name, const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckCounter(const std::string& key, const std::string& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a key's record another sum; 0: it goes.
  void Change(const std::string& name, const std::string& key, uint64_t sum)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveRange(const std::string& name, const std::string& min, const std::string& max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Copy(const std::string& from, const std::string& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Findings& findings_;
  int64_t acknowledged_ = 0;
  std::string history_id_;
  mutable absl::Mutex mutex_;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sum_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Place, std::less<>> places_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Owner> owners_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> counters_ ABSL_GUARDED_BY(mutex_);
  std::deque<StateAt> states_ ABSL_GUARDED_BY(mutex_);  // the latest, by ascending versions
  FeedFigures figures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve::prove
