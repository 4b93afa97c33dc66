// A connected, non-blocking stream socket (TCP or Unix) whose waits have a deadline. The destructor
// closes it. Errors are Unavailable when the connection cannot be had or is lost, and
// DeadlineExceeded when the time is up.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client_options.h"

namespace varve {

class Socket {
 public:
  Socket() = default;
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  // Tries the addresses of options.host in turn, each for at most options.connect_timeout.
  [[nodiscard]] static absl::StatusOr<Socket> Connect(const ClientOptions& options);

  bool is_open() const { return descriptor_ >= 0; }
  void Close();

  // How many bytes the kernel took; 0 when it has no room now.
  [[nodiscard]] absl::StatusOr<size_t> Send(std::string_view bytes);
  // How many bytes were there; 0 when none are there now. The end of the stream is an error.
  [[nodiscard]] absl::StatusOr<size_t> Receive(char* buffer, size_t size);
  // Waits until there is something to read or, if asked for, room to write. `timeout` 0: as long as
  // it takes.
  [[nodiscard]] absl::Status Wait(bool for_writing, std::chrono::milliseconds timeout);
  // Returns whether the other side has closed the connection, as far as that is known by now.
  bool IsStale() const;

 private:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

// InvalidArgument: the path is longer than the address of a Unix socket may be.
[[nodiscard]] absl::Status CheckUnixPath(const std::string& path);
// "host:port" or the path of the Unix socket, for messages.
std::string AddressOf(const ClientOptions& options);

}  // namespace varve
