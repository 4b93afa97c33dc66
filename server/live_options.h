// The options that may change while the server runs, as the code that obeys them reads them: each by itself, without a lock. The
// rest of ServerOptions stays as it was at start. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "type/server_options.h"

namespace varve {

struct LiveOptions {
  explicit LiveOptions(const ServerOptions& options)
      : max_clients(options.max_clients),
        idle_timeout(options.idle_timeout),
        tcp_keepalive(options.tcp_keepalive),
        snapshot_max_age(options.snapshot_max_age),
        protected_mode(options.protected_mode) {}

  std::atomic<size_t> max_clients;
  std::atomic<std::chrono::seconds> idle_timeout;
  std::atomic<std::chrono::seconds> tcp_keepalive;
  std::atomic<std::chrono::nanoseconds> snapshot_max_age;
  std::atomic<bool> protected_mode;
};

}  // namespace varve
