// A Varve link makes this server's store follow that of another Varve server. A thread of its own
// connects, asks what the primary has, and commits the changes that the primary sends; another one
// tells the primary how far it has come. Both connect anew for as long as the link runs.
//
// The link finds out what the two stores have in common (server/replication/lineage.h):
//
//   all that this store has       it goes on behind that, if the primary still retains it
//   less, as this one was a       what only this store has goes into a file (diverged_file.h), and
//   primary, too                  then it takes a copy
//   nothing, and this store is    it takes a copy
//   empty
//   nothing                       it refuses to follow
//
// A copy takes the place of the store with the next start, which the link asks for.
//
// Thread-safety: one thread calls Start() and Stop().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/backoff.h"
#include "client/client.h"
#include "server/execution/server_state.h"
#include "server/following/primary_answers.h"
#include "server/replication/replication_file.h"
#include "util/os/steady_condition.h"

namespace varve {

struct VarveLinkParts {
  ServerState* server = nullptr;
  FileSystem* file_system = nullptr;
  std::string directory;  // of this server's store
  // Returns how to connect to the primary, by the settings that are in force.
  std::function<ClientOptions()> connection;
  uint16_t port = 0;           // on which others reach this server
  std::string announced_host;  // by which they do; empty: the address that it connects from
  // Gives this store the lineage of the primary, which has everything that this one has. On disk on
  // return.
  std::function<absl::Status(const Lineage& lineage)> adopt;
  // Returns the replication file of a copy with this lineage.
  std::function<ReplicationRecord(const Lineage& lineage)> record_of_copy;
  // The primary speaks the protocol of Redis alone: another link has to take over. Called on the
  // link's thread, which ends then.
  std::function<void()> is_redis;
};

class VarveLink {
 public:
  // Requires: what the parts point to outlives the link.
  explicit VarveLink(VarveLinkParts parts);
  ~VarveLink();
  VarveLink(const VarveLink&) = delete;
  VarveLink& operator=(const VarveLink&) = delete;

  // ResourceExhausted: the system gives no threads.
  [[nodiscard]] absl::Status Start();
  // Returns when both threads have ended. What has been committed stays.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Next : uint8_t { kFollow, kCopy };

  void Run();
  // Connects and follows until something ends that.
  absl::Status Follow();
  absl::StatusOr<PrimaryHello> SayHello();
  // Finds out what the stores have in common, and does what has to be done before this one follows.
  absl::StatusOr<Next> Prepare(const PrimaryHello& hello);
  absl::StatusOr<bool> IsEmpty() const;
  absl::Status SaveDiverged(SequenceNumber fork);
  absl::Status PullChanges(const PrimaryHello& hello);
  absl::Status TakeCopy(const PrimaryHello& hello);
  // Tells the primary how far this store has come, whenever that changes.
  void Acknowledge() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AcknowledgeOver(Client* client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Note(LinkPhase phase);
  void Pause(std::chrono::milliseconds pause) ABSL_LOCKS_EXCLUDED(mutex_);

  const VarveLinkParts parts_;
  ServerState& server_;
  ReplicatedStore& store_;
  std::unique_ptr<Client> client_;
  Backoff backoff_;
  SequenceNumber saved_fork_ = kMaxSequence;  // behind which commits went into a file
  std::string said_;                          // the error that the log has last
  std::atomic<bool> stop_{false};
  std::atomic<bool> follows_{false};  // the primary knows this follower
  absl::Mutex mutex_;
  SteadyCondition changed_;  // of progress_, follows_ or stop_
  uint64_t progress_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t listener_ = 0;
  std::thread puller_;
  std::thread acknowledger_;
};

}  // namespace varve
