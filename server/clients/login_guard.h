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
// Thread-safety: all functions may be called on any thread.
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

  // How many wrong passwords an address has free; one is forgotten each second.
  static constexpr uint32_t kFree = 10;
  // The most wrong passwords that count, so that an address is free of them after a minute.
  static constexpr uint32_t kMostRemembered = 60;
  static constexpr std::chrono::milliseconds kDelay{1000};
  static constexpr size_t kMostAddresses = 4096;  // remembered at a time

  // The action that a wrong password asks of the caller besides answering it.
  enum class Report { kNothing, kFirst, kMany };

  // Notes a wrong password of the client at `address` ("10.0.0.5:4000", "[::1]:4000",
  // "/run/varve.sock:0"). The caller logs kFirst, the first in a while, and kMany, from which on
  // the address waits.
  Report Failed(std::string_view address, Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns how long the next password from the address has to wait.
  std::chrono::milliseconds Delay(std::string_view address, Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Failures {
    uint32_t count;  // at `at`
    Time at;
    uint32_t Remembered(Time now) const;
  };

  // Forgets addresses whose failures no longer count. If all of them count, forgets all: the guard
  // does not stop a client that has so many addresses.
  void MakeRoom(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Failures> failures_ ABSL_GUARDED_BY(mutex_);
};

// Returns the address without its port; for IPv6 only the network of 64 bits.
std::string NetworkOf(std::string_view address);

}  // namespace varve
