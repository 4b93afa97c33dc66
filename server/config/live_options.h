// The options that may change while the server runs. The code that obeys an option reads it by
// itself, without a lock. The other fields of ServerOptions stay as they were at start.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "type/server_options.h"

namespace varve {

// A reader that sees one field of a change and not yet another judges by limits that were in force
// a moment before or after.
class LiveOutputLimits {
 public:
  explicit LiveOutputLimits(const OutputLimits& limits) { Set(limits); }
  void Set(const OutputLimits& limits) {
    hard_.store(limits.hard, std::memory_order_relaxed);
    soft_.store(limits.soft, std::memory_order_relaxed);
    soft_time_.store(limits.soft_time, std::memory_order_relaxed);
  }
  OutputLimits Get() const {
    return {hard_.load(std::memory_order_relaxed), soft_.load(std::memory_order_relaxed),
            soft_time_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<size_t> hard_;
  std::atomic<size_t> soft_;
  std::atomic<std::chrono::seconds> soft_time_;
};

struct LiveOptions {
  explicit LiveOptions(const ServerOptions& options)
      : max_clients(options.max_clients),
        max_memory(options.max_memory),
        unsent_max_bytes(options.unsent_max_bytes),
        max_value_bytes(options.max_value_bytes),
        max_clients_memory(options.max_clients_memory),
        reply_limits(options.reply_limits),
        message_limits(options.message_limits),
        idle_timeout(options.idle_timeout),
        login_timeout(options.login_timeout),
        tcp_keepalive(options.tcp_keepalive),
        backup_ttl(options.backup_ttl),
        snapshot_max_age(options.snapshot_max_age),
        protected_mode(options.protected_mode),
        min_followers(options.replication.min_followers),
        max_follower_lag(options.replication.max_lag),
        sync_replicas(options.replication.sync_followers),
        serves_stale_data(options.replication.serves_stale_data) {}

  std::atomic<size_t> max_clients;
  std::atomic<size_t> max_memory;
  std::atomic<size_t> unsent_max_bytes;
  std::atomic<size_t> max_value_bytes;
  std::atomic<size_t> max_clients_memory;
  LiveOutputLimits reply_limits;
  LiveOutputLimits message_limits;
  std::atomic<std::chrono::seconds> idle_timeout;
  std::atomic<std::chrono::seconds> login_timeout;
  std::atomic<std::chrono::seconds> tcp_keepalive;
  std::atomic<std::chrono::seconds> backup_ttl;
  std::atomic<std::chrono::nanoseconds> snapshot_max_age;
  std::atomic<bool> protected_mode;
  std::atomic<size_t> min_followers;
  std::atomic<std::chrono::seconds> max_follower_lag;
  std::atomic<size_t> sync_replicas;
  std::atomic<bool> serves_stale_data;
};

}  // namespace varve
