#include "server/http/http_access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "fmt/format.h"
#include "server/access/permissions.h"
#include "server/commands/command_table.h"
#include "server/execution/denied_access.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr std::string_view kBasic = "basic ";

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

// What a header of basic authentication says; both are empty where it says nothing.
struct Credentials {
  std::string name;
  std::string password;
};

Credentials CredentialsOf(std::string_view authorization) {
  if (authorization.size() <= kBasic.size() ||
      !IsSameName(authorization.substr(0, kBasic.size()), kBasic))
    return {};
  std::string decoded;
  if (!DecodeBase64(authorization.substr(kBasic.size()), &decoded)) return {};
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return {};
  std::string name = colon == 0 ? "default" : decoded.substr(0, colon);
  return {.name = std::move(name), .password = decoded.substr(colon + 1)};
}

// Counts the failed login, and logs it.
void NoteFailedLogin(ServerState& server, const std::string& name, const HttpPeer& peer) {
  server.statistics.failed_logins.fetch_add(1, std::memory_order_relaxed);
  NoteDenied(server, {.reason = DeniedAccess::Reason::kAuth,
                      .command = "http",
                      .object = "http",
                      .user = name,
                      .context = "http",
                      .client = fmt::format("addr={} user={}", peer.address, name),
                      .address = peer.address});
  const auto now = std::chrono::steady_clock::now();
  if (server.clients.login_guard.Failed(peer.address, now) != LoginGuard::Report::kNothing)
    spdlog::warn("A client at {} gave a wrong password over HTTP", peer.address);
}

// Returns whether the user's limits let it work from the peer's address.
bool MayCome(const User& user, const HttpPeer& peer) {
  return RefusalByLimits(user.limits, user.name, peer.address, std::time(nullptr)).empty();
}

// Returns whether there is a password to give: of a user who is on.
bool AnyoneHasPassword(const UserTable& users) {
  const std::vector<UserPointer> all = users.All();
  return std::any_of(all.begin(), all.end(), [](const UserPointer& user) {
    return user->on && !user->nopass && !user->passwords.empty();
  });
}

// Returns the user that the peer's certificate names; null: it names none that is on.
UserPointer CertifiedUser(const UserTable& users, const HttpPeer& peer) {
  for (const std::string& name : peer.user_names) {
    if (UserPointer user = users.Find(name); user != nullptr && user->on) return user;
  }
  return nullptr;
}

}  // namespace

bool MayExecute(const UserTable& users, const User* user, Arguments request) {
  if (user == nullptr) return false;
  const Command* const command = FindCommand(request[0]);
  VARVE_ASSERT(command != nullptr);
  return !FindDenial(users.catalog(), *user, *command, request, Place(), CheckPlace::kNo);
}

bool MayReadAllKeys(const User* user) {
  if (user == nullptr) return false;
  const auto reads_all = [](const Selector& selector) {
    return selector.all_places() && AllowsEveryKey(selector, kMayRead);
  };
  return reads_all(user->root) ||
         std::any_of(user->selectors.begin(), user->selectors.end(), reads_all);
}

bool IsOwnHost(std::string_view host, const std::vector<std::string>& hosts) {
  return IsSameName(host, "localhost") || IsIpAddress(host) ||
         std::any_of(hosts.begin(), hosts.end(),
                     [&](const std::string& own) { return IsSameName(own, host); });
}

HttpReader ReaderOf(ServerState& server, const HttpRequest& request, const HttpPeer& peer) {
  const UserTable& users = server.clients.users;
  const auto refuse = [](int status, std::string_view why, std::string_view headers = {}) {
    return HttpReader{
        .refusal = HttpReply{.status = status, .body = std::string(why), .more_headers = headers}};
  };
  const std::string_view status[] = {"status"};
  const auto may_read = [&](const User& user) {
    return MayCome(user, peer) && (peer.is_loopback || MayExecute(users, &user, status));
  };
  if (request.authorization.empty()) {
    UserPointer certified = CertifiedUser(users, peer);
    if (certified != nullptr && may_read(*certified)) return {.user = std::move(certified)};
    if (peer.is_loopback) {
      UserPointer nobody_in_particular = users.Default();
      const bool is_user = !users.login_needed() && MayCome(*nobody_in_particular, peer);
      return {.user = is_user ? std::move(nobody_in_particular) : nullptr};
    }
    const bool is_password_known = users.login_needed() || AnyoneHasPassword(users);
    if (certified != nullptr) {
      return refuse(is_password_known ? 401 : 403,
                    fmt::format("The certificate names the user {}, who may not execute STATUS or "
                                "may not come from there.\n",
                                certified->name),
                    is_password_known ? kAskForUser : std::string_view());
    }
    if (is_password_known) return refuse(401, "This page takes a password.\n", kAskForUser);
    return refuse(403,
                  "This page takes a password where it is asked for from another machine, and the "
                  "server has none: set one (requirepass).\n");
  }
  const Credentials given = CredentialsOf(request.authorization);
  UserPointer user = given.name.empty() ? nullptr : users.LogIn(given.name, given.password);
  // A user who takes any password is nobody in particular to another machine.
  if (user != nullptr && (peer.is_loopback || !user->nopass) && may_read(*user))
    return {.user = std::move(user)};
  NoteFailedLogin(server, given.name, peer);
  return refuse(401, "The user or the password is wrong, or the user may not execute STATUS.\n",
                kAskForUser);
}

std::chrono::milliseconds PasswordDelay(ServerState& server, const HttpRequest& request,
                                        const HttpPeer& peer) {
  if (request.authorization.empty()) return std::chrono::milliseconds(0);
  return server.clients.login_guard.Delay(peer.address, std::chrono::steady_clock::now());
}

}  // namespace varve
