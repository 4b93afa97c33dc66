// The classes of keyspace events, and the letters by which the setting notify-keyspace-events
// chooses among them.
//
// Thread-safety: the functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

// The bits of the setting. Classes of types that Varve does not have are known and never sent.
enum KeyEventClass : uint32_t {
  kKeyspaceChannels = 1u << 0,  // K
  kKeyeventChannels = 1u << 1,  // E
  kGenericEvent = 1u << 2,      // g
  kStringEvent = 1u << 3,       // $
  kExpiredEvent = 1u << 8,      // x
  kEvictedEvent = 1u << 9,      // e
  kMissEvent = 1u << 12,        // m
  kNewEvent = 1u << 13,         // n
};

// Returns the letters of the setting as bits. Nothing: one of the letters is unknown.
std::optional<uint32_t> ParseKeyEvents(std::string_view letters);

// Returns the letters in Redis' order, with A for the classes that it stands for.
std::string ShowKeyEvents(uint32_t classes);

inline constexpr std::string_view kKeyEventsNeeded =
    "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";

}  // namespace varve
