// The passed sockets are those that the service manager opened before it started this process, and
// on which it goes on listening when the process ends (socket activation; sd_listen_fds(3) has the
// protocol). A client that connects while no server runs thus waits for the next one instead of
// being refused.
//
// The name of a socket says what it becomes: "http" the HTTP listener, "tls" the port for TLS
// alone, and any other name the data port or, by its family, the Unix socket. It takes the place of
// what the settings would have the server open; where none was passed, the settings hold.
//
// Thread-safety: one thread uses the object. FromEnvironment() changes the environment, so no other
// thread may read or change that meanwhile.
// Invariants: the object owns its descriptors. Each is a stream socket that listens; it does not
// block, and exec closes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

class PassedSockets {
 public:
  enum class Role : uint8_t { kData, kUnix, kTls, kHttp };

  // No sockets.
  PassedSockets() { descriptors_.fill(kNone); }
  ~PassedSockets();  // closes those that nobody took
  PassedSockets(PassedSockets&& other) noexcept;
  PassedSockets& operator=(PassedSockets&&) = delete;

  // Takes over the sockets that $LISTEN_PID, $LISTEN_FDS and $LISTEN_FDNAMES tell of, if this
  // process is meant, and removes the variables, so that no child takes itself to be meant.
  // InvalidArgument names the variable or the descriptor that is wrong.
  [[nodiscard]] static absl::StatusOr<PassedSockets> FromEnvironment();

  // Returns the same sockets under other descriptors. ResourceExhausted: the system gives none.
  [[nodiscard]] absl::StatusOr<PassedSockets> Duplicate() const;

  bool Has(Role role) const { return descriptors_[Index(role)] != kNone; }
  // Returns the port of a TCP socket that was passed.
  uint16_t PortOf(Role role) const;
  // Hands the descriptor over to the caller; kNone: there is none.
  int Take(Role role);

  static constexpr int kNone = -1;

 private:
  static constexpr size_t kRoles = 4;
  static size_t Index(Role role) { return static_cast<size_t>(role); }
  // Takes over the descriptor, which was passed under the name.
  absl::Status Add(int descriptor, std::string_view name);

  std::array<int, kRoles> descriptors_;
};

}  // namespace varve
