// The service manager tells systemd, or another program that set $NOTIFY_SOCKET, how the server is:
// it sends one datagram of `NAME=value` lines to that Unix socket (sd_notify(3) describes the
// protocol). Without the variable it does nothing.
//
// Thread-safety: All threads may use it after construction.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "varve/replay_progress.h"

namespace varve {

class ServiceManager {
 public:
  // Reads the environment.
  ServiceManager();

  // Tells how far the replay of the log has come, and that the start takes longer for it.
  void NotifyReplay(const ReplayProgress& progress) const;
  // Tells that the files of the configuration are read anew. "READY=1" ends it.
  void NotifyReloading() const;

  // E.g. "READY=1" or "STOPPING=1". Never blocks for long, never fails: nobody could act on it.
  void Notify(std::string_view state) const;

  // How often "WATCHDOG=1" is expected at least; 0: it isn't.
  std::chrono::microseconds watchdog() const { return watchdog_; }

 private:
  std::string socket_;  // a path, or "@name" in the abstract namespace
  std::chrono::microseconds watchdog_{0};
};

}  // namespace varve
