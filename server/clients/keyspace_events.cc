#include "server/clients/keyspace_events.h"

#include "fmt/format.h"

namespace varve {
void KeyspaceEvents::Set(uint32_t classes) {
  classes_.store((classes & (kKeyspaceChannels | kKeyeventChannels)) != 0 ? classes : 0,
                 std::memory_order_relaxed);
}

size_t KeyspaceEvents::Send(std::string_view event, NamespaceId space, std::string_view key,
                            SequenceNumber durable_after) {
  if (!pubsub_->Any()) return 0;
  size_t cost = 0;
  if (Tells(kKeyspaceChannels)) {
    const std::string channel = fmt::format("__keyspace@{}__:{}", space, key);
    if (channel.size() <= PubSub::kMaxChannelName) cost += Publish(channel, event, durable_after);
  }
  if (Tells(kKeyeventChannels))
    cost += Publish(fmt::format("__keyevent@{}__:{}", space, event), key, durable_after);
  return cost;
}

size_t KeyspaceEvents::Publish(std::string_view channel, std::string_view message,
                               SequenceNumber durable_after) {
  size_t all = 0;
  PubSub::Publication publication{
      .channel = channel, .message = message, .durable_after = durable_after};
  const auto spent = [&all](size_t cost) {
    all += cost;
    return false;
  };
  (void)pubsub_->Publish(&publication, spent);  // to its end, as it is never interrupted
  return all;
}

}  // namespace varve
