#include "server/clients/client_description.h"

#include <algorithm>
#include <chrono>

#include "fmt/format.h"

namespace varve {
namespace {

// As in Redis: O monitors, P listens to channels, x is between MULTI and EXEC, b waits for the end
// of CLIENT PAUSE or for a commit, t tracks keys, R has lost the connection that it redirects to, B
// tracks prefixes, c closes after its reply, e is not evicted, N is nothing of these.
std::string Flags(const ClientState& client, bool subscribed, bool closing) {
  std::string flags;
  if (client.link.monitoring.load(std::memory_order_relaxed)) flags += 'O';
  if (subscribed) flags += 'P';
  if (client.link.queued.load(std::memory_order_relaxed) >= 0) flags += 'x';
  if (client.link.paused.load(std::memory_order_relaxed) ||
      client.link.blocked.load(std::memory_order_relaxed) != ClientLink::Blocked::kNo)
    flags += 'b';
  const uint8_t tracking = client.link.tracking.load(std::memory_order_relaxed);
  if (tracking & ClientLink::kTracks) flags += 't';
  if (tracking & ClientLink::kRedirectionBroken) flags += 'R';
  if (tracking & ClientLink::kBroadcasts) flags += 'B';
  if (closing) flags += 'c';
  if (client.link.no_evict.load(std::memory_order_relaxed)) flags += 'e';
  return flags.empty() ? "N" : flags;
}

size_t Subscriptions(const ClientState& client, PubSub::Kind kind) {
  return client.link.subscriptions[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
}

int64_t Redirection(const ClientLink& link) {
  const bool tracks = (link.tracking.load(std::memory_order_relaxed) & ClientLink::kTracks) != 0;
  return tracks ? static_cast<int64_t>(link.redirect.load(std::memory_order_relaxed)) : -1;
}

}  // namespace

std::string DescribeClient(const ClientState& client, bool self) {
  const ClientLink& link = client.link;
  const auto now = std::chrono::steady_clock::now();
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  const int64_t age =
      std::chrono::duration_cast<std::chrono::seconds>(now - client.connected).count();
  const int64_t idle =
      std::max<int64_t>(0, seconds - link.active_at.load(std::memory_order_relaxed));
  const uint64_t input = link.input_bytes.load(std::memory_order_relaxed);
  const uint64_t room = link.input_room.load(std::memory_order_relaxed);
  const uint64_t output = link.output_bytes.load(std::memory_order_relaxed);
  const uint64_t waiting = link.mailbox.bytes();
  const int protocol = self ? client.protocol : link.protocol.load(std::memory_order_relaxed);
  absl::MutexLock lock(&link.names_mutex);
  return fmt::format(
      "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} "
      "multi={} qbuf={} "
      "qbuf-free={} argv-mem=0 multi-mem={} rbs={} rbp={} obl={} oll={} omem={} tot-mem={} "
      "events={} cmd={} "
      "user={} "
      "redir={} resp={} lib-name={} lib-ver={}\n",
      client.id, client.address, link.local_address, link.descriptor, client.name, age, idle,
      Flags(client, client.link.Subscribed(), self && client.close_after_reply),
      link.space.load(std::memory_order_relaxed), Subscriptions(client, PubSub::Kind::kChannel),
      Subscriptions(client, PubSub::Kind::kPattern), Subscriptions(client, PubSub::Kind::kShard),
      link.queued.load(std::memory_order_relaxed), input, room,
      link.transaction_bytes.load(std::memory_order_relaxed), output, output, output,
      waiting > 0 ? 1 : 0, waiting, ClientBytes(client), output + waiting > 0 ? "rw" : "r",
      link.last_command.load(std::memory_order_relaxed), client.user_name, Redirection(link),
      protocol, client.library_name, client.library_version);
}

uint64_t ClientBytes(const ClientState& client) {
  return sizeof(ClientState) + client.link.BufferBytes() +
         client.link.transaction_bytes.load(std::memory_order_relaxed) +
         client.link.subscription_bytes.load(std::memory_order_relaxed);
}

std::string_view ClientType(const ClientState& client) {
  return client.link.Subscribed() ? "pubsub" : "normal";
}

bool ClientFilter::Matches(const ClientState& client, uint64_t self) const {
  if (client.link.mailbox.close_requested()) return false;
  if (skip_self && client.id == self) return false;
  if (!ids.empty() && std::find(ids.begin(), ids.end(), client.id) == ids.end()) return false;
  if (address && *address != client.address) return false;
  if (user) {
    absl::MutexLock lock(&client.link.names_mutex);
    if (*user != client.user_name) return false;
  }
  if (local_address && *local_address != client.link.local_address) return false;
  return !type || *type == ClientType(client);
}

}  // namespace varve
