// The replication state says what this server is to others: a primary, or the follower of one, and
// how its link to the primary does. The link writes it; commands, metrics and pages read it.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/replication/follower_table.h"
#include "varve/types.h"

namespace varve {

// The address of a primary; no host: this server is a primary itself.
struct PrimaryAddress {
  std::string host;
  uint16_t port = 0;

  bool named() const { return !host.empty(); }
  friend bool operator==(const PrimaryAddress&, const PrimaryAddress&) = default;
};

// Returns the address that a setting "host port" names; no host where it is empty.
// Requires: the setting took the text.
PrimaryAddress ParsePrimaryAddress(std::string_view text);
// Returns "host port"; empty: nobody.
std::string PrimaryText(const PrimaryAddress& primary);

// The phases of the link to the primary. The words are those of ROLE in Redis.
enum class LinkPhase : uint8_t {
  kConnect,     // it is about to try
  kConnecting,  // it tries
  kSync,        // it takes a copy
  kConnected,   // it follows
};

// The phases of FAILOVER. INFO calls them no-failover, waiting-for-sync and failover-in-progress.
enum class FailoverPhase : uint8_t { kNone, kWaitsForSync, kInProgress };

struct FailoverRequest {
  PrimaryAddress target;                 // no host: whichever follower has everything first
  bool force = false;                    // go on with the target when the time is over
  bool abort = false;                    // end the failover that is under way
  std::chrono::milliseconds timeout{0};  // 0: wait for as long as it takes
};

struct LinkReport {
  LinkPhase phase = LinkPhase::kConnect;
  std::string error;      // why the last try failed; empty: it did not, or none was made
  bool is_redis = false;  // the primary speaks PSYNC alone
  std::chrono::steady_clock::time_point last_io{};     // when the primary was heard of last
  std::chrono::steady_clock::time_point down_since{};  // valid unless the link is connected
  SequenceNumber primary_version = kNoSequence;        // the newest of the primary, as it told last
  uint64_t copied_bytes = 0;                           // of the copy that is being taken
  uint64_t copy_bytes = 0;
  std::vector<std::string> upstream;  // the ids of the primary, its primary, and so on
  // These four tell of a primary that is a Redis: its replication id, up to where in its stream
  // this store has everything, the keys that the store does not take by type, and the first names.
  std::string redis_id;
  int64_t redis_offset = 0;
  std::map<std::string, uint64_t> skipped;
  std::vector<std::string> skipped_names;
};

// The counts since the server's start, but for the last one.
struct SyncCounts {
  // As a primary: followers that took a copy; that went on from where they were; that wanted to and
  // could not. The names are those of INFO stats in Redis.
  std::atomic<uint64_t> full{0};
  std::atomic<uint64_t> partial_ok{0};
  std::atomic<uint64_t> partial_err{0};
  // As a follower: operations that no other server has, and that were written to a file, ever.
  std::atomic<uint64_t> diverged{0};
};

class ReplicationState {
 public:
  ReplicationState();
  ReplicationState(const ReplicationState&) = delete;
  ReplicationState& operator=(const ReplicationState&) = delete;

  // Returns the id by which other servers know this one: 40 hex digits, random unless it was given.
  const std::string& id() const { return id_; }
  // Requires: no other thread uses the object yet.
  void SetId(std::string id) { id_ = std::move(id); }

  // Returns whether this server follows another one.
  bool follows() const { return follows_.load(std::memory_order_acquire); }
  PrimaryAddress primary() const ABSL_LOCKS_EXCLUDED(mutex_);
  // No host: it follows nobody.
  void SetPrimary(PrimaryAddress primary) ABSL_LOCKS_EXCLUDED(mutex_);

  LinkReport link() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Has link() complete its report by calling `complete`, without a lock.
  // Requires: it is set before other threads use the object.
  void OnReport(std::function<void(LinkReport* report)> complete) {
    complete_ = std::move(complete);
  }
  // Calls `change` with the report, under the lock.
  template <typename Change>
  void UpdateLink(Change change) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    change(link_);
    const bool is_up = link_.phase == LinkPhase::kConnected;
    link_is_up_.store(is_up, std::memory_order_release);
    link_was_up_ = link_was_up_ || is_up;
  }
  // Returns whether the link follows; costs one load.
  bool link_is_up() const { return link_is_up_.load(std::memory_order_acquire); }

  // Returns whether it follows, or did so, since SetPrimary().
  bool link_was_up() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return link_was_up_;
  }

  FollowerTable followers;
  SyncCounts counts;
  std::atomic<FailoverPhase> failover{FailoverPhase::kNone};

 private:
  std::string id_;
  std::function<void(LinkReport*)> complete_;
  std::atomic<bool> follows_{false};
  std::atomic<bool> link_is_up_{false};
  mutable absl::Mutex mutex_;
  PrimaryAddress primary_ ABSL_GUARDED_BY(mutex_);
  LinkReport link_ ABSL_GUARDED_BY(mutex_);
  bool link_was_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve
