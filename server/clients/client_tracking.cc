#include "server/clients/client_tracking.h"

#include <vector>

#include "fmt/format.h"
#include "server/clients/client_modes.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Shows other threads the mode of the client.
void ShowMode(ClientState* client) {
  const TrackingMode& mode = client->modes.tracking;
  const int bits =
      (mode.on ? ClientLink::kTracks : 0) | (mode.broadcast ? ClientLink::kBroadcasts : 0);
  client->link.tracking.store(static_cast<uint8_t>(bits));
  client->link.redirect.store(mode.redirect);
}

}  // namespace

absl::Status StartTracking(Clients* clients, ClientState* client, const TrackingMode& wanted,
                           absl::Span<const std::string_view> prefixes) {
  TrackingMode& mode = client->modes.tracking;
  size_t bytes = 0;
  for (const std::string_view prefix : prefixes) bytes += prefix.size() + kBytesPerName;
  if (client->link.subscription_bytes.load(std::memory_order_relaxed) + bytes >
      kMaxSubscriptionBytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "prefixes and channels of one client take at most {} bytes", kMaxSubscriptionBytes));
  }
  const TrackingMode before = mode;
  mode = wanted;
  mode.on = true;
  mode.prefixes = before.prefixes;
  // Before the connection is a tracker, so that it is not broken already.
  ShowMode(client);
  if (!clients->tracking.Start(client)) {
    mode = before;
    ShowMode(client);
    return absl::NotFoundError("The client ID you want redirect to does not exist");
  }
  for (const std::string_view prefix : prefixes) {
    if (!mode.prefixes.emplace(prefix).second) continue;
    client->link.subscription_bytes.fetch_add(prefix.size() + kBytesPerName,
                                              std::memory_order_relaxed);
    clients->tracking.AddPrefix(*client, prefix);
  }
  return absl::OkStatus();
}

void StopTracking(Clients* clients, ClientState* client) {
  TrackingMode& mode = client->modes.tracking;
  if (!mode.on) return;
  for (const std::string& prefix : mode.prefixes) {
    clients->tracking.RemovePrefix(*client, prefix);
    client->link.subscription_bytes.fetch_sub(prefix.size() + kBytesPerName,
                                              std::memory_order_relaxed);
  }
  clients->tracking.Stop(client);
  mode = TrackingMode();
  ShowMode(client);
}

bool ReadsKeys(const Command& command, Arguments arguments) {
  if (KeyCount(command, arguments.size()) == 0) return false;
  if ((command.flags & kContainerCommand) == 0) return (command.flags & kReadCommand) != 0;
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  return subcommand != nullptr && (subcommand->flags & kReadCommand) != 0;
}

void TrackReads(Clients* clients, ClientState* client, const Command& command,
                Arguments arguments) {
  const TrackingMode& mode = client->modes.tracking;
  if (mode.broadcast || mode.Remembers()) RememberReads(clients, client, command, arguments);
}

void RememberReads(Clients* clients, ClientState* client, const Command& command,
                   Arguments arguments) {
  VARVE_ASSERT(client->modes.tracking.on);
  if (client->modes.tracking.broadcast) return clients->tracking.NotePlace(client);
  if (!ReadsKeys(command, arguments)) return;
  const size_t count = KeyCount(command, arguments.size());
  std::vector<std::string_view> keys;
  keys.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    keys.push_back(arguments[static_cast<size_t>(command.keys.first) +
                             i * static_cast<size_t>(command.keys.step)]);
  }
  clients->tracking.Remember(*client, keys);
}

void EndCaching(ClientState* client, const Command* command) {
  if (!client->modes.tracking.caching) [[likely]]
    return;
  const bool goes_on =
      client->modes.transaction.open || (command != nullptr && command->name == "client");
  if (!goes_on) client->modes.tracking.caching = false;
}

}  // namespace varve
