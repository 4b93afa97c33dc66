// The protocol between a follower and its primary (commands_replica.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve {

// Servers with other numbers do not understand each other.
inline constexpr uint64_t kReplicaProtocol = 1;
// The hex digits of a server's id.
inline constexpr size_t kReplicaIdSize = 40;

}  // namespace varve
