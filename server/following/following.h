// Following makes a server the follower of another one, and a primary again, and keeps what it is
// in the replication file, so that a restart goes on with it.
//
// A promotion (no primary) forks the history of the store: the versions that follow are this
// server's own, and followers of the old primary can tell up to where they have the same.
//
// Thread-safety: all functions may be called on any thread. Follow() and RetainForFollowers() wait
// for the disk, and Follow() for the end of the link before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/server_state.h"
#include "server/following/redis_link.h"
#include "server/following/varve_link.h"
#include "server/replication/replication_file.h"

namespace varve {

class Following {
 public:
  // Requires: the server's state outlives it.
  explicit Following(ServerState* server);
  ~Following();
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;

  // Reads the replication file, and has the store follow or not, as it says; the settings name the
  // primary of a server to which nobody has said REPLICAOF. DataLoss: the file is damaged.
  // Requires: nobody uses the server's state yet.
  [[nodiscard]] absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_, record_mutex_);
  // Starts the link to the primary, if there is one. `port`: on which this server serves.
  [[nodiscard]] absl::Status Start(uint16_t port) ABSL_LOCKS_EXCLUDED(mutex_, record_mutex_);
  // Ends the link; the server stays what it is.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_, record_mutex_);

  // Returns whether the server has, or had, followers, or is one.
  bool retains() const { return retains_.load(); }

  // ServerState::follow
  [[nodiscard]] absl::Status Follow(const PrimaryAddress& primary)
      ABSL_LOCKS_EXCLUDED(mutex_, record_mutex_);
  // ServerState::retain_for_followers
  [[nodiscard]] absl::Status RetainForFollowers() ABSL_LOCKS_EXCLUDED(record_mutex_);
  // ServerState::lineage
  Lineage GetLineage() const ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Returns how this server connects to another one.
  ClientOptions ConnectionTo(const PrimaryAddress& primary) const;

 private:
  absl::Status StartLink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(record_mutex_);
  absl::Status StartRedisLink() ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Completes the report of the link by what the link to a Redis tells, if there is one.
  void CompleteReport(LinkReport* report) ABSL_LOCKS_EXCLUDED(redis_mutex_);
  // Notes what the link to a Redis does.
  void ShowRedis() ABSL_LOCKS_EXCLUDED(redis_mutex_);
  void EndLinks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BeginToFollow(const PrimaryAddress& primary) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Begins another history behind the newest version, with this primary or, without a host, none.
  absl::Status Fork(const PrimaryAddress& primary) ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Shows why there is no link to a Redis.
  void NoteRedis(const absl::Status& started);
  absl::Status Promote() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Gives the store the lineage of the primary.
  absl::Status Adopt(const Lineage& lineage) ABSL_LOCKS_EXCLUDED(record_mutex_);
  // Has the store be that of the record's last history.
  absl::Status MatchHistory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(record_mutex_);
  absl::Status Write(ReplicationRecord record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(record_mutex_);

  ServerState& server_;
  ReplicatedStore* const store_;  // null: it can't be replicated
  std::string directory_;         // of the store
  uint16_t port_ = 0;
  std::atomic<bool> retains_{false};
  absl::Mutex mutex_;  // held while links begin and end
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  mutable absl::Mutex record_mutex_ ABSL_ACQUIRED_AFTER(mutex_);  // held while the file is written
  ReplicationRecord record_ ABSL_GUARDED_BY(record_mutex_);
  std::unique_ptr<VarveLink> link_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex redis_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  std::unique_ptr<RedisLink> redis_ ABSL_GUARDED_BY(redis_mutex_);
};

}  // namespace varve
