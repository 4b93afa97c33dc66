// The settings of a server that has followers, or that is one, as plain values. The names of the
// settings are those of Redis, where it has them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace varve {

struct ReplicationOptions {
  // As a follower.
  std::string primary;            // "host port" of the server to follow; empty: none
  std::string user;               // as which it logs in there; empty: the default user
  std::string password;           // that it gives there; empty: none
  bool tls = false;               // it speaks TLS to the primary
  std::string announced_host;     // by which others reach it; empty: the address it comes from
  uint16_t announced_port = 0;    // 0: the port that it listens on
  std::string read_only = "yes";  // clients can't write to a follower
  bool serves_stale_data = true;  // it answers while the link to the primary is down
  int priority = 100;             // that INFO shows, for programs that choose the next primary
  // As a primary.
  size_t min_followers = 0;          // fewer good ones: writes are refused; 0: never
  std::chrono::seconds max_lag{10};  // a follower is good if it was heard of within that time
  size_t sync_followers = 0;         // that have a write on disk before its reply leaves
  uint64_t retention_bytes = uint64_t{10} << 30;  // of changes, kept for followers that are behind
};

}  // namespace varve
