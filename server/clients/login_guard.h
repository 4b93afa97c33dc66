// The login guard slows down a client that tries passwords over many connections at once, or over
// ever new ones. A few wrong passwords from one address are free. After more of them, each password
// from that address, right or wrong, waits before it is looked at: n connections then try n
// passwords a second and no more. A client with the right password waits a second at most, even
// beside a guesser at the same address, and not at all from another address. So no client is locked
// out.
//
// An address is that of a machine in IPv4, the network of 64 bits in IPv6, and the path of a Unix
// socket.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class LoginGuard {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Wrong passwords before anybody waits; one is forgotten each second.
  static constexpr uint32_t kFree = 10;
  // So an address is free of it a minute after the last at most.
  static constexpr uint32_t kMostRemembered = 60;
  static constexpr std::chrono::milliseconds kDelay{1000};
  static constexpr size_t kMostAddresses = 4096;  // remembered at a time

  // The action that a wrong password asks of the caller besides answering it.
  enum class Report { kNothing, kFirst, kMany };

  // A wrong password came from the client at `address` ("10.0.0.5:4000", "[::1]:4000",
  // "/run/varve.sock:0"). kFirst, kMany: worth a line in the log, since it is the first in a while,
  // or since those who follow wait from now on.
  Report Failed(std::string_view address, Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // How long a password that comes from there has to wait.
  std::chrono::milliseconds Delay(std::string_view address, Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Failures {
    uint32_t count;  // at `at`
    Time at;
    uint32_t Remembered(Time now) const;
  };

  // Forgets what no longer counts, or, where everything does, all of it: whoever has so many
  // addresses is not held up by this.
  void MakeRoom(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Failures> failures_ ABSL_GUARDED_BY(mutex_);
};

// The address without its port, and of IPv6 only the network.
std::string NetworkOf(std::string_view address);

}  // namespace varve
