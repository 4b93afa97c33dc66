// The state that all clients of the server share: the registry of connections, the users,
// the memory that clients hold, and the channels that they listen to.
//
// Thread-safety: each part may be used on any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/access/acl_file.h"
#include "server/access/acl_log.h"
#include "server/access/audit_log.h"
#include "server/access/user_table.h"
#include "server/clients/change_waiters.h"
#include "server/clients/client_memory.h"
#include "server/clients/client_pause.h"
#include "server/clients/client_registry.h"
#include "server/clients/key_tracking.h"
#include "server/clients/keyspace_events.h"
#include "server/clients/login_guard.h"
#include "server/clients/monitors.h"
#include "server/clients/pubsub.h"
#include "server/clients/pushed_stream.h"
#include "type/server_options.h"

namespace varve {

struct Clients {
  Clients(const CommandCatalog* catalog, const ServerOptions& options)
      : users(catalog, options.password),
        acl_file(options.acl_file),
        audit(options.acl_log_file),
        events(&pubsub, options.key_events) {}

  std::atomic<uint64_t> next_id{1};
  std::atomic<uint64_t> connected{0};  // now
  ClientRegistry registry;
  UserTable users;
  AclFile acl_file;
  AclLog denials;
  AuditLog audit;
  LoginGuard login_guard;
  ClientMemory memory;
  PubSub pubsub{&memory};
  KeyspaceEvents events;
  Monitors monitors{&memory};
  ClientPause pause{&registry};
  KeyTracking tracking{&memory, &users, &registry};
  ChangeWaiters changes;
  StreamTurns stream_turns;
};

}  // namespace varve
