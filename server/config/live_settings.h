// The interface through which a changed setting takes effect while the server runs. The
// configuration calls it; the running server implements it.
//
// Thread-safety: the configuration calls it under its lock, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/config/live_options.h"
#include "type/server_options.h"
#include "varve/options.h"

namespace varve {

class LiveSettings {
 public:
  virtual ~LiveSettings() = default;

  // Returns the options that the server's threads read directly.
  virtual LiveOptions& live_options() = 0;
  // Tells the keyspace events of `classes` from now on.
  virtual void SetKeyEvents(uint32_t classes) = 0;
  // Requires the password of connections that come from now on. Empty: none is required.
  virtual void SetPassword(const std::string& password) = 0;
  // Applies options.acl_all_channels and options.acl_log_entries.
  virtual void SetAccess(const ServerOptions& options) = 0;
  // Remembers at most so many keys for CLIENT TRACKING; 0: any number.
  virtual void SetTrackedKeys(size_t keys) = 0;
  // Applies options.slow_log_micros and options.slow_log_entries.
  virtual void SetSlowLog(const ServerOptions& options) = 0;
  // Uses options.tls for connections that come from now on. The error says why it can't.
  [[nodiscard]] virtual absl::Status SetTls(const ServerOptions& options) = 0;
  // Applies options.max_memory and options.max_memory_policy.
  virtual void SetDataLimit(const ServerOptions& options) = 0;
  // Bounds the data directory by so many bytes. The error says why that is not possible.
  [[nodiscard]] virtual absl::Status SetDiskLimit(uint64_t bytes) = 0;
  // Syncs writes from now on in this mode.
  virtual void SetSync(Durability sync) = 0;
  // Lets a reply to a write leave once so many followers have the write on disk, too.
  virtual void SetSyncReplicas(size_t followers) = 0;
};

}  // namespace varve
