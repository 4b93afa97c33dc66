// Every setting and every limit of the server, with its default. Plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "type/replication_options.h"
#include "type/tls_options.h"
#include "varve/options.h"

namespace varve {

// The threads on which batches of requests run: see server/execution/execution_policy.h.
enum class Execution : uint8_t { kAdaptive, kPool, kInline };

// How far a connection may fall behind with taking what is sent to it, before it is closed. 0
// bytes: without a limit.
struct OutputLimits {
  size_t hard = 0;  // bytes
  size_t soft = 0;  // bytes for longer than soft_time
  std::chrono::seconds soft_time{0};

  bool operator==(const OutputLimits&) const = default;
};

struct ServerOptions {
  std::string bind = "127.0.0.1";
  // 0: no TCP if there is a Unix socket, any free port if there is none.
  uint16_t port = 7777;
  std::string unix_socket;              // path of a Unix socket to listen on as well; empty: none
  int unix_socket_mode = 0700;          // its permissions
  std::string http_bind = "127.0.0.1";  // where metrics, health and status are served
  int http_port = 7778;                 // 0: not at all, -1: on any free port
  std::string http_hosts;               // names that requests may call this server, with commas
  std::string metrics_prefixes;         // prefixes of keys whose bytes are shown, with commas
  // Requests that take so long are kept for SLOWLOG; negative: none.
  int64_t slow_log_micros = 10000;
  size_t slow_log_entries = 128;         // so many
  std::string password;                  // that clients must give; empty: none
  std::string acl_file;                  // file of users; empty: none
  std::string acl_log_file;              // file of denials and of @admin commands; empty: none
  bool acl_all_channels = false;         // new users may use all channels
  size_t acl_log_entries = 128;          // denials kept for ACL LOG
  size_t tracking_max_keys = 1'000'000;  // that CLIENT TRACKING remembers; 0: any number
  bool protected_mode = true;            // without a password, serve only clients of this machine
  Execution execution = Execution::kAdaptive;
  uint16_t store_threads = 256;  // that wait for a store on other machines, at most
  int databases = 16;            // that SELECT knows
  uint32_t key_events = 0;  // of which it tells on channels, see server/clients/keyspace_events.h
  int io_threads = 0;       // 0: one for every two cores, 1 to 16
  int threads = 0;          // of the pool; 0: one for every core, at least 2
  size_t max_clients = 10000;
  size_t max_memory = 0;  // bytes of keys and values that the store may hold; 0: any
  std::string max_memory_policy = "noeviction";  // which keys make room for more

  // Bounds on what one connection may hold.
  size_t max_batch_requests = 1024;  // requests that are read ahead and executed together
  // Bytes read ahead before the first of them is executed, unless one needs more.
  size_t max_batch_bytes = 1u << 20;
  size_t unsent_max_bytes = 1u << 20;  // replies a client may leave unread before its requests wait
  // On replies that wait for a client; a single one may be as large as a value.
  OutputLimits reply_limits;
  // On messages that wait for it.
  OutputLimits message_limits{32u << 20, 8u << 20, std::chrono::seconds(60)};
  size_t max_value_bytes = kMaxValueSize;  // of one argument, and of a value that grows
  // Requests, replies and messages that all connections hold; 0: any.
  size_t max_clients_memory = size_t{2} << 30;
  size_t reply_slice_bytes = 256u << 10;  // replies produced at a time
  // Memory that an idle connection may keep for its next request.
  size_t keep_buffer_bytes = 64u << 10;
  // Batches waiting for the pool; beyond it they run where they were read.
  size_t pool_queue_capacity = 16384;
  // The longest time for which a reply that is produced as the client takes it may hold its
  // snapshot: meanwhile versions of records stay on disk that others have replaced. 0: any time.
  std::chrono::nanoseconds snapshot_max_age = std::chrono::minutes(10);
  std::chrono::seconds idle_timeout{0};  // after which a silent connection is closed; 0: never
  // Within which a client has to give the password; 0: never.
  std::chrono::seconds login_timeout{60};
  // After which a silent peer is asked whether it is still there; 0: never.
  std::chrono::seconds tcp_keepalive{300};
  std::string backup_directory = "backupdir";  // within the store's
  std::chrono::seconds backup_ttl{3600};  // for which the files of a backup stay unused; 0: forever
  // A graceful stop waits this long for clients to take their replies.
  std::chrono::milliseconds drain_timeout{10000};
  TlsOptions tls;
  ReplicationOptions replication;
};

}  // namespace varve
