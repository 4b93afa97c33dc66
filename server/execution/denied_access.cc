#include "server/execution/denied_access.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr std::string_view kReasons[] = {"command", "key",  "database",
                                         "channel", "auth", "tls-cert"};
constexpr size_t kShownObject = 1024;  // bytes of a key or a channel that the log keeps

}  // namespace

void NoteDenied(ServerState& server, DeniedAccess denied) {
  const size_t reason = static_cast<size_t>(denied.reason);
  VARVE_ASSERT(reason < std::size(kReasons));
  const size_t counted = std::min(reason, std::size(server.statistics.access_denied) - 1);
  server.statistics.access_denied[counted].fetch_add(1, std::memory_order_relaxed);
  AclLog::Entry entry;
  entry.reason = kReasons[reason];
  entry.context = denied.context;
  entry.object.assign(denied.object.substr(0, kShownObject));
  entry.username.assign(denied.user.substr(0, kShownObject));
  entry.client = std::move(denied.client);
  entry.created_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  server.clients.audit.Add({.event = "denied",
                            .reason = entry.reason,
                            .command = denied.command,
                            .object = entry.object,
                            .context = entry.context,
                            .user = entry.username,
                            .client = denied.address,
                            .client_id = denied.client_id});
  server.clients.denials.Add(std::move(entry));
}

}  // namespace varve
