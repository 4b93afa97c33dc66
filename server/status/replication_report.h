// The report on replication: what INFO replication shows, and the words that others use for it.
//
// Thread-safety: all threads may call the functions.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/execution/server_state.h"

namespace varve {

// Returns the newest version that readers see.
SequenceNumber NewestVersion(const ServerState& server);

// Return Redis' words.
std::string_view NameOf(LinkPhase phase);
std::string_view NameOf(FailoverPhase phase);
std::string_view StateOf(const Follower& follower);  // online or send_bulk

// Returns the seconds since the follower was heard of.
int64_t LagOf(const Follower& follower, std::chrono::steady_clock::time_point now);

// Returns name and value of the lines of INFO replication, in Redis' order. `run_id` stands for the
// id of the history where the store retains no changes.
std::vector<std::pair<std::string, std::string>> ReplicationLines(const ServerState& server,
                                                                  std::string_view run_id);

}  // namespace varve
