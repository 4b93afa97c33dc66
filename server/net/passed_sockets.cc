#include "server/net/passed_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr int kFirstDescriptor = 3;  // SD_LISTEN_FDS_START
constexpr int kMostSockets = 64;     // no unit has as many; a typing error may
constexpr std::string_view kNameOfRole[] = {"the data port", "the Unix socket", "the TLS port",
                                            "HTTP"};

// Returns the variable and removes it from the environment.
std::optional<std::string> TakeVariable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string taken = value;
  ::unsetenv(name);
  return taken;
}

absl::Status Wrong(std::string_view what, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("sockets of the service manager: {}: {}", std::string(what), std::string(why)));
}

int OptionOf(int descriptor, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

PassedSockets::~PassedSockets() {
  for (const int descriptor : descriptors_) {
    if (descriptor != kNone) ::close(descriptor);
  }
}

PassedSockets::PassedSockets(PassedSockets&& other) noexcept : descriptors_(other.descriptors_) {
  other.descriptors_.fill(kNone);
}

absl::StatusOr<PassedSockets> PassedSockets::FromEnvironment() {
  const std::optional<std::string> process = TakeVariable("LISTEN_PID");
  const std::optional<std::string> count_text = TakeVariable("LISTEN_FDS");
  const std::optional<std::string> names_text = TakeVariable("LISTEN_FDNAMES");
  PassedSockets sockets;
  // A child of a service inherits what was meant for the service.
  if (!process.has_value() || *process != std::to_string(::getpid())) return sockets;
  int count = 0;
  if (!count_text.has_value() || !absl::SimpleAtoi(*count_text, &count) || count < 1 ||
      count > kMostSockets) {
    return Wrong(fmt::format("LISTEN_FDS={}", count_text.value_or("")),
                 fmt::format("takes 1 to {}", kMostSockets));
  }
  std::vector<std::string> names(static_cast<size_t>(count));
  if (names_text.has_value()) names = absl::StrSplit(*names_text, ':');
  if (names.size() != static_cast<size_t>(count)) {
    return Wrong(fmt::format("LISTEN_FDNAMES={}", *names_text),
                 fmt::format("has {} names for {} sockets", names.size(), count));
  }
  for (int i = 0; i < count; ++i)
    VARVE_RETURN_IF_ERROR(sockets.Add(kFirstDescriptor + i, names[static_cast<size_t>(i)]));
  return sockets;
}

absl::Status PassedSockets::Add(int descriptor, std::string_view name) {
  const std::string what = name.empty()
                               ? fmt::format("descriptor {}", descriptor)
                               : fmt::format("descriptor {} ({})", descriptor, std::string(name));
  if (::fcntl(descriptor, F_GETFD) < 0) return Wrong(what, std::strerror(errno));
  if (OptionOf(descriptor, SO_TYPE) != SOCK_STREAM || OptionOf(descriptor, SO_ACCEPTCONN) != 1)
    return Wrong(what, "is no stream socket that listens (ListenStream=, Accept=no)");
  const int family = OptionOf(descriptor, SO_DOMAIN);
  const bool is_tcp = family == AF_INET || family == AF_INET6;
  const Role role = name == "http"  ? Role::kHttp
                    : name == "tls" ? Role::kTls
                    : is_tcp        ? Role::kData
                                    : Role::kUnix;
  const std::string_view use = kNameOfRole[Index(role)];
  if (!is_tcp && (family != AF_UNIX || role != Role::kUnix))
    return Wrong(what, fmt::format("{} takes no socket of this kind", use));
  if (Has(role)) return Wrong(what, fmt::format("{} has a socket already", use));
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 || flags < 0 ||
      ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0)
    return Wrong(what, std::strerror(errno));
  descriptors_[Index(role)] = descriptor;
  return absl::OkStatus();
}

absl::StatusOr<PassedSockets> PassedSockets::Duplicate() const {
  PassedSockets copy;
  for (size_t i = 0; i < kRoles; ++i) {
    if (descriptors_[i] == kNone) continue;
    copy.descriptors_[i] = ::fcntl(descriptors_[i], F_DUPFD_CLOEXEC, 0);
    if (copy.descriptors_[i] == kNone)
      return absl::ResourceExhaustedError("the system gives no descriptor for a passed socket");
  }
  return copy;
}

uint16_t PassedSockets::PortOf(Role role) const {
  VARVE_ASSERT(Has(role) && role != Role::kUnix);
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(descriptors_[Index(role)], reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in*>(&address)->sin_port
                   : reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
}

int PassedSockets::Take(Role role) { return std::exchange(descriptors_[Index(role)], kNone); }

}  // namespace varve
