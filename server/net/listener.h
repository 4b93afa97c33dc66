// The listener accepts connections on the TCP port, the TCP port for TLS, and the Unix socket. It
// opens them, or takes over those that the service manager passed. It works in an asio loop that
// somebody else runs.
//
// Thread-safety: Open() comes first, on one thread; Start() and Close() may be called on any. One
// thread at a time runs the loop, and calls OnAccepted.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/net/passed_sockets.h"
#include "type/server_options.h"

namespace varve {

class Listener {
 public:
  // The two ends of a connection.
  struct Peer {
    std::string address;        // "10.0.0.5:40000", "[::1]:40000", or "path:0" of the Unix socket
    std::string local_address;  // the server's end of it
    bool tcp = true;
    bool tls_alone = false;        // came to the port for TLS
    bool on_this_machine = false;  // came over the loopback interface or the Unix socket
  };
  // Takes over a connected, non-blocking descriptor.
  using OnAccepted = std::function<void(int descriptor, Peer peer)>;

  // Requires: `io` outlives the listener.
  explicit Listener(asio::io_context* io) : io_(*io) {}

  // Takes from `passed` what it has for this listener, and opens the rest as the options say.
  // FailedPrecondition names the address that can't be listened on.
  [[nodiscard]] absl::Status Open(const ServerOptions& options, PassedSockets* passed);
  // From now on the loop accepts connections.
  void Start(OnAccepted on_accepted);
  // Accepts nothing more. `on_closed` is called on the loop's thread, after the last OnAccepted.
  void Close(std::function<void()> on_closed);

  // 0: no TCP.
  uint16_t port() const { return port_; }
  // 0: no port for TLS alone.
  uint16_t tls_port() const { return tls_port_; }
  // Returns where it listens, for people: "127.0.0.1:7777 and /run/varve/varve.sock". Requires:
  // Close() was not called.
  std::string Places() const;

 private:
  absl::Status OpenData(const ServerOptions& options, PassedSockets* passed);
  absl::Status OpenTls(const ServerOptions& options, PassedSockets* passed);
  static absl::Status OpenTcp(const std::string& host, uint16_t wanted_port,
                              asio::ip::tcp::acceptor* acceptor, uint16_t* port);
  static absl::Status AdoptTcp(int descriptor, asio::ip::tcp::acceptor* acceptor, uint16_t* port);
  absl::Status OpenUnix(const ServerOptions& options);
  absl::Status AdoptUnix(int descriptor);
  template <typename Acceptor>
  void Accept(Acceptor* acceptor, asio::steady_timer* retry, bool tls_alone);
  Peer PeerOf(const asio::ip::tcp::socket& socket, const asio::ip::tcp::endpoint& peer) const;
  Peer PeerOf(const asio::local::stream_protocol::socket& socket,
              const asio::local::stream_protocol::endpoint& peer) const;

  asio::io_context& io_;
  asio::ip::tcp::acceptor tcp_{io_};
  asio::ip::tcp::acceptor tls_{io_};
  asio::local::stream_protocol::acceptor unix_{io_};
  asio::steady_timer tcp_retry_{io_};
  asio::steady_timer tls_retry_{io_};
  asio::steady_timer unix_retry_{io_};
  OnAccepted on_accepted_;
  std::string unix_path_;
  bool unlinks_ = false;  // the path at the end, as this listener made it
  uint16_t port_ = 0;
  uint16_t tls_port_ = 0;
};

// Returns whether a connection from there has not left the machine: 127.0.0.0/8, ::1, and the
// former written as the latter.
bool IsLoopback(const asio::ip::address& address);

}  // namespace varve
