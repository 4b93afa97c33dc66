// The protocol between a follower and its primary (commands_replica.cc).
#pragma once

#include <cstdint>

namespace varve {

// Servers with other numbers do not understand each other.
inline constexpr uint64_t kReplicaProtocol = 1;

}  // namespace varve
