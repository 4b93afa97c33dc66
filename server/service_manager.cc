#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace varve {
namespace {

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

ServiceManager::ServiceManager() : socket_(Environment("NOTIFY_SOCKET")) {
  // Who is meant; a child of a service inherits the variables.
  const std::string process = Environment("WATCHDOG_PID");
  if (process.empty() || process == std::to_string(getpid())) {
    watchdog_ =
        std::chrono::microseconds(std::strtoll(Environment("WATCHDOG_USEC").c_str(), nullptr, 10));
  }
}

void ServiceManager::Notify(std::string_view state) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return;
  const size_t length = offsetof(sockaddr_un, sun_path) + socket_.size();
  [[maybe_unused]] const ssize_t sent =
      ::sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
  ::close(descriptor);
}

}  // namespace varve
