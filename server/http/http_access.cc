#include "server/http/http_access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/access/permissions.h"
#include "server/commands/command_table.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr std::string_view kBasic = "basic ";
constexpr std::string_view kAsk = "WWW-Authenticate: Basic realm=\"varve\", charset=\"UTF-8\"\r\n";

bool IsSameName(std::string_view a, std::string_view b) {
  return absl::EqualsIgnoreCase(absl::string_view(a.data(), a.size()),
                                absl::string_view(b.data(), b.size()));
}

bool IsIpAddress(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  char bytes[sizeof(in6_addr)];
  const std::string text(host);
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

// Returns whether the header names a user, with the right password, who may execute STATUS. A user
// who takes any password is nobody in particular.
bool IsReader(const ServerState& server, std::string_view authorization) {
  if (authorization.size() <= kBasic.size() ||
      !IsSameName(authorization.substr(0, kBasic.size()), kBasic))
    return false;
  std::string decoded;
  if (!DecodeBase64(authorization.substr(kBasic.size()), &decoded)) return false;
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return false;
  const std::string_view name = std::string_view(decoded).substr(0, colon);
  const std::string_view password = std::string_view(decoded).substr(colon + 1);
  const UserTable& users = server.clients.users;
  const UserPointer user = users.LogIn(name.empty() ? "default" : name, password);
  if (user == nullptr || user->nopass) return false;
  const Command* const status = FindCommand("status");
  VARVE_ASSERT(status != nullptr);
  const std::string_view request[] = {"status"};
  return !FindDenial(users.catalog(), *user, *status, request, Place(), CheckPlace::kNo);
}

}  // namespace

bool IsOwnHost(std::string_view host, const std::vector<std::string>& hosts) {
  return IsSameName(host, "localhost") || IsIpAddress(host) ||
         std::any_of(hosts.begin(), hosts.end(),
                     [&](const std::string& own) { return IsSameName(own, host); });
}

std::optional<HttpReply> RefusalOf(ServerState& server, const HttpRequest& request,
                                   const HttpPeer& peer) {
  if (peer.is_loopback) return std::nullopt;
  if (request.authorization.empty() && !server.clients.users.login_needed()) {
    return HttpReply{.status = 403,
                     .body =
                         "This page takes a password where it is asked for from another "
                         "machine, and the server has none: set one (requirepass).\n"};
  }
  if (request.authorization.empty())
    return HttpReply{.status = 401, .body = "This page takes a password.\n", .more_headers = kAsk};
  const auto now = std::chrono::steady_clock::now();
  if (server.clients.login_guard.Delay(peer.address, now).count() > 0) {
    return HttpReply{.status = 429,
                     .body = "Too many wrong passwords came from this address.\n",
                     .more_headers = "Retry-After: 1\r\n"};
  }
  if (IsReader(server, request.authorization)) return std::nullopt;
  server.statistics.failed_logins.fetch_add(1, std::memory_order_relaxed);
  if (server.clients.login_guard.Failed(peer.address, now) != LoginGuard::Report::kNothing)
    spdlog::warn("A client at {} gave a wrong password over HTTP", peer.address);
  return HttpReply{
      .status = 401,
      .body = "The user or the password is wrong, or the user may not execute STATUS.\n",
      .more_headers = kAsk};
}

}  // namespace varve
