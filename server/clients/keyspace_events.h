// Keyspace notifications: what happens to keys, told on channels as Redis names them. Which are
// told is the setting notify-keyspace-events; a message leaves when what it reveals is durable,
// like a reply.
//
//   __keyspace@<db>__:<key>     message: the event, such as "set"
//   __keyevent@<db>__:<event>   message: the key
//
// <db> is the database's number, or the id of a named namespace. Thread-safe. Costs one load where
// nothing is told.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/clients/pubsub.h"
#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

// Bits of the setting. Those of types that there are none of are known and never sent.
enum KeyEventClass : uint32_t {
  kKeyspaceChannels = 1u << 0,  // K
  kKeyeventChannels = 1u << 1,  // E
  kGenericEvent = 1u << 2,      // g
  kStringEvent = 1u << 3,       // $
  kExpiredEvent = 1u << 8,      // x
  kMissEvent = 1u << 12,        // m
  kNewEvent = 1u << 13,         // n
};

// The letters of the setting as bits. Nothing: one of them means nothing.
std::optional<uint32_t> ParseKeyEvents(std::string_view letters);
// The letters in Redis' order, with A for the classes that it stands for.
std::string ShowKeyEvents(uint32_t classes);
inline constexpr std::string_view kKeyEventsNeeded =
    "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";

class KeyspaceEvents {
 public:
  KeyspaceEvents(PubSub* pubsub, uint32_t classes) : pubsub_(pubsub) { Set(classes); }

  void Set(uint32_t classes);
  bool Tells(KeyEventClass which) const {
    return (classes_.load(std::memory_order_relaxed) & which) != 0;
  }

  // Tells those who listen; the message leaves when `durable_after` is durable. Returns what that
  // took, in the units of GlobCost(). All who listen get it at once: very many of them hold up the
  // thread.
  size_t Send(std::string_view event, NamespaceId space, std::string_view key,
              SequenceNumber durable_after);

 private:
  size_t Publish(std::string_view channel, std::string_view message, SequenceNumber durable_after);

  PubSub* const pubsub_;
  std::atomic<uint32_t> classes_{0};  // none where there is no channel to tell them on
};

}  // namespace varve
