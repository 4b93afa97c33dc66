// The address of a Redis or Valkey that this server follows, and what it tells of the link to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/client_options.h"

namespace varve {

struct RedisPrimary {
  std::string host;
  uint16_t port = 6379;
  std::string user;      // empty: AUTH has the password alone
  std::string password;  // empty: no AUTH is sent
  ClientTlsOptions tls;
  uint16_t own_port = 0;  // what the primary shows as this server's port
};

struct RedisLinkStatus {
  bool up = false;       // the stream of commands is followed
  bool syncing = false;  // a copy is being taken
  // These four tell of the last copy, or of the one that is being taken; keys are of all types. A
  // total of 0 is not known: Redis does not tell the size of a copy that it sends without a file.
  uint64_t keys_done = 0;
  uint64_t keys_total = 0;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
  std::string replid;  // of the primary's history; empty: no copy is complete
  int64_t offset = 0;  // in the primary's stream, up to which this store has everything
  std::chrono::steady_clock::time_point last_io{};  // when the primary was heard of last
  std::string error;                                // why the link is down; empty: it is not
  // The values in the last copy and the commands behind it that the store cannot hold, by type
  // ("hash"), and the names of the first keys ("hash user:1").
  std::map<std::string, uint64_t> skipped;
  std::vector<std::string> skipped_names;
  uint64_t full_syncs = 0;
  uint64_t partial_syncs = 0;
};

}  // namespace varve
