// Where connections come in: the TCP port, the Unix socket, or both. Open() comes first, then Run()
// is the body of a thread, until Stop(), which any thread may call.
#pragma once

#include <asio.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "type/server_options.h"

namespace varve {

class Listener {
 public:
  // Who is at the other end.
  struct Peer {
    std::string address;        // "10.0.0.5:40000", "[::1]:40000", or "path:0" of the Unix socket
    std::string local_address;  // the server's end of it
    bool tcp = true;
    bool on_this_machine = false;  // came over the loopback interface or the Unix socket
  };
  // Takes over a connected, non-blocking descriptor. Called by the thread that runs the listener.
  using OnAccepted = std::function<void(int descriptor, Peer peer)>;

  // FailedPrecondition names the address that can't be listened on.
  [[nodiscard]] absl::Status Open(const ServerOptions& options);
  void Run(OnAccepted on_accepted);
  void Stop();

  // 0: no TCP.
  uint16_t port() const { return port_; }

 private:
  absl::Status OpenTcp(const ServerOptions& options);
  absl::Status OpenUnix(const ServerOptions& options);
  template <typename Acceptor>
  void Accept(Acceptor* acceptor, asio::steady_timer* retry);
  Peer PeerOf(const asio::ip::tcp::socket& socket) const;
  Peer PeerOf(const asio::local::stream_protocol::socket& socket) const;

  asio::io_context io_{1};
  asio::ip::tcp::acceptor tcp_{io_};
  asio::local::stream_protocol::acceptor unix_{io_};
  asio::steady_timer tcp_retry_{io_};
  asio::steady_timer unix_retry_{io_};
  OnAccepted on_accepted_;
  std::string unix_path_;
  uint16_t port_ = 0;
};

// Whether a connection from there has not left the machine: 127.0.0.0/8, ::1, and the former
// written as the latter.
bool IsLoopback(const asio::ip::address& address);

}  // namespace varve
