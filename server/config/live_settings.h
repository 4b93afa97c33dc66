// The interface through which a changed setting takes effect while the server runs. The
// configuration calls it; the running server implements it.
//
// Thread-safety: the configuration calls it under its lock, from any thread.
#pragma once

#include <cstdint>
#include <string>

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
  // Applies options.slow_log_micros and options.slow_log_entries.
  virtual void SetSlowLog(const ServerOptions& options) = 0;
  // Syncs writes from now on in this mode.
  virtual void SetSync(Durability sync) = 0;
};

}  // namespace varve
