#include "server/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// The time within which the replay takes its next step, however slow the disk is.
constexpr std::chrono::minutes kLongestStep{2};

// "3.2 GiB"
std::string ReadableSize(double bytes) {
  static constexpr std::string_view kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes)
                   : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

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

void ServiceManager::NotifyReplay(const ReplayProgress& progress) const {
  VARVE_ASSERT(progress.bytes_read <= progress.bytes_total && progress.bytes_total != 0);
  const auto total = static_cast<double>(progress.bytes_total);
  Notify(fmt::format("STATUS=replaying {} % of {} of log\nEXTEND_TIMEOUT_USEC={}",
                     static_cast<int>(100 * (static_cast<double>(progress.bytes_read) / total)),
                     ReadableSize(total), std::chrono::microseconds(kLongestStep).count()));
}

void ServiceManager::NotifyReloading() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  Notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                     std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
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
