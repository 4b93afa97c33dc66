// The state that all connections share: the store, the settings in force, the clients, and the
// statistics. The server constructs it; every CommandContext refers to it. Rooms below this one
// receive the part that they need.
//
// Thread-safety: `options` does not change while the server runs; every other part may be used by
// all threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/backups/backup_service.h"
#include "server/clients/clients.h"
#include "server/config/configuration.h"
#include "server/config/live_options.h"
#include "server/config/live_settings.h"
#include "server/eviction/evictor.h"
#include "server/execution/execution_policy.h"
#include "server/execution/scan_cursors.h"
#include "server/ingests/ingest_table.h"
#include "server/replication/lineage.h"
#include "server/replication/replica_feeds.h"
#include "server/replication/replication_state.h"
#include "server/replication/sync_gate.h"
#include "server/statistics/server_statistics.h"
#include "server/statistics/store_waits.h"
#include "type/server_options.h"
#include "util/os/bounded_file_system.h"
#include "varve/store.h"

namespace varve {

class TlsContexts;

// The parts that the program around the server hands to it.
struct ServerProgram {
  // The file that settings came from and that CONFIG REWRITE writes to. Empty: there is none.
  std::string config_file;
  // The settings as they were given, which CONFIG REWRITE writes together with later changes.
  // Unset: the settings that the server is started with.
  std::optional<ServerConfig> given;
  // Has another thread stop the server soon; SHUTDOWN calls it. May be empty.
  std::function<void()> shut_down;
  // Does the same, and then begins anew with the store of the copy that was taken
  // (server/following/incoming_store.h). Empty: this server takes no copies.
  std::function<void()> restart;
  // The users of a server that begins anew; empty: those of the settings.
  std::vector<User> users;
  // The TLS contexts in use, which other listeners share. Null: the server makes its own.
  std::shared_ptr<TlsContexts> tls;
  // The bound of the data directory, in which the store has its files (--max-disk-bytes); it
  // outlives the server. Null: there is none.
  BoundedFileSystem* disk = nullptr;
};

// The last time that a client asked for everything to be put on disk; before the first such
// request, the server's start.
struct LastSave {
  std::atomic<int64_t> unix_seconds{std::time(nullptr)};
  std::atomic<uint64_t> changes{0};  // Store::ChangeCount() at that time
};

// The directory, within the store's, of the copy that a follower takes.
inline constexpr std::string_view kCopyDirectory = "replica-copy";

// The services that the server has for its followers.
struct ReplicaServices {
  // Requires: both outlive it.
  ReplicaServices(Store* store, const FollowerTable& followers)
      : feeds(ReplicationOf(store)),
        gate(ReplicationOf(store), &followers),
        copies(store, std::string(kCopyDirectory)) {}

  ReplicaFeeds feeds;
  SyncGate gate;
  BackupService copies;
};

// The functions of replication that the server brings, and commands call.
struct ReplicationCalls {
  // Has this server follow another one from now on, or, where no host is named, nobody. On disk on
  // return; the link to the primary comes about later.
  std::function<absl::Status(const PrimaryAddress& primary)> follow = [](const auto&) {
    return absl::UnimplementedError("this server follows nobody");
  };
  // Begins a failover to a follower, or ends the one that was begun. It goes on by itself: what it
  // does is in ReplicationState::failover.
  std::function<absl::Status(const FailoverRequest& request)> fail_over = [](const auto&) {
    return absl::UnimplementedError("this server has no failover");
  };
  // Has the store retain changes for followers, also after restarts. On disk on return.
  std::function<absl::Status()> retain_for_followers = [] {
    return absl::UnimplementedError("this server has no followers");
  };
  // Has connections look again whether their replies may leave.
  std::function<void()> release_replies = [] {};
  // Returns the lineage of the store.
  std::function<Lineage()> lineage = [] { return Lineage(); };
};

struct ServerState final : public LiveSettings {
  // `settings` are those in force. The server knows `commands`.
  // Requires: `the_store` and `commands` outlive this.
  ServerState(Store* the_store, ServerConfig settings, ServerProgram program,
              const CommandCatalog* commands);

  // Returns whether a client listens to a channel and what was written so far may be announced,
  // each message once it is durable.
  bool MayTell() const { return clients.pubsub.Any() && store->PushUnsynced().ok(); }

  // Lets counts begin anew for CONFIG RESETSTAT, except those of what exists now.
  void ResetStatistics();

  LiveOptions& live_options() override { return live; }
  void SetKeyEvents(uint32_t classes) override { clients.events.Set(classes); }
  void SetPassword(const std::string& password) override {
    clients.users.SetDefaultPassword(password);
  }
  void SetTrackedKeys(size_t keys) override { clients.tracking.SetMaxKeys(keys); }
  void SetAccess(const ServerOptions& wanted) override;
  void SetSlowLog(const ServerOptions& wanted) override;
  void SetDataLimit(const ServerOptions& wanted) override;
  absl::Status SetDiskLimit(uint64_t bytes) override;
  void SetSync(Durability sync) override { store->SetSync(sync); }
  void SetSyncReplicas(size_t followers) override {
    live.sync_replicas = followers;
    ApplySyncReplicas(/*begins=*/false);
  }
  // Has replies wait for followers as the setting says, unless this server is one itself. `begins`:
  // it is not known yet what followers have.
  void ApplySyncReplicas(bool begins);
  absl::Status SetTls(const ServerOptions& wanted) override;

  Store* const store;
  const ServerOptions options;  // as they were at start; those that may change are in `live`
  const bool groups_gather;     // --group-max-delay is set: a group of the log waits for company
  LiveOptions live;
  Configuration configuration;
  const std::function<void()> shut_down;
  const std::function<void()> restart;
  // Has a thread of the pool call the task. False: its queue is full, or the server stops.
  std::function<bool(std::function<void()> task)> run_on_pool = [](const auto&) { return false; };
  // Returns for how long each thread of the pool has been idle, see ThreadPool::IdleNanos().
  std::function<std::vector<int64_t>()> pool_idle_nanos = [] { return std::vector<int64_t>(); };
  const std::shared_ptr<TlsContexts> tls;  // never null
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  LastSave last_save;
  std::atomic<bool> draining{false};  // the server stops: no new connections are accepted
  Clients clients;
  ServerStatistics statistics;
  ScanCursors scan_cursors;
  IngestTable ingests{store};
  BackupService backups{store, options.backup_directory};
  ReplicationState replication;
  ReplicaServices for_followers{store, replication.followers};
  ReplicationCalls calls;
  KeyCosts key_costs;
  BoundedFileSystem* const disk;  // as in ServerProgram
  Evictor evictor{store, &clients, &replication};
  StoreWaits store_waits;
};

}  // namespace varve
