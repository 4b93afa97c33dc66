// Keyspace notifications tell, on channels that Redis names, what happens to keys. The setting
// notify-keyspace-events chooses the classes of events. A message leaves when what it reveals is
// durable, like a reply.
//
//   __keyspace@<db>__:<key>     message: the event, such as "set"
//   __keyevent@<db>__:<event>   message: the key
//
// <db> is the database's number, or the id of a named namespace. A class of events that is not
// chosen costs one load.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/clients/pubsub.h"
#include "server/config/key_event_classes.h"
#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

class KeyspaceEvents {
 public:
  KeyspaceEvents(PubSub* pubsub, uint32_t classes) : pubsub_(pubsub) { Set(classes); }

  void Set(uint32_t classes);
  bool Tells(KeyEventClass which) const {
    return (classes_.load(std::memory_order_relaxed) & which) != 0;
  }

  // Sends the messages of an event to the subscribers; they leave when `durable_after` is durable.
  // Returns the cost, in the units of GlobCost(). All subscribers get the message within this call,
  // so very many of them hold up the thread.
  size_t Send(std::string_view event, NamespaceId space, std::string_view key,
              SequenceNumber durable_after);

 private:
  size_t Publish(std::string_view channel, std::string_view message, SequenceNumber durable_after);

  PubSub* const pubsub_;
  std::atomic<uint32_t> classes_{0};  // 0 if neither kind of channel is chosen
};

}  // namespace varve
