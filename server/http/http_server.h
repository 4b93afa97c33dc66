// The HTTP server puts listener and pages together, and obeys the settings http-bind and http-port.
// It may start before there is a store, so that health can be asked for while the log is replayed.
//
// Thread-safety: one thread calls all functions but port().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/config/settings.h"
#include "server/execution/server_state.h"
#include "server/http/http_listener.h"
#include "server/http/http_pages.h"

namespace varve {

class HttpServer {
 public:
  // `tls`: the contexts that the listener shares with other ports; null: it speaks no TLS.
  explicit HttpServer(std::shared_ptr<TlsContexts> tls = nullptr)
      : tls_(std::move(tls)), listener_(tls_.get()) {}

  // Serves as the settings say, or not at all. The error says why the port can't be had, if
  // http-port was given; where only its default is taken, the server logs a warning and goes on.
  // `passed`: a socket that listens already and takes the place of http-bind and http-port; -1:
  // there is none. It belongs to the server from now on.
  [[nodiscard]] absl::Status Start(const ServerConfig& config, int passed = -1);
  // Lets the pages tell of the server.
  // Requires: Stop() is called before it goes.
  void ServeFor(ServerState* server);
  void Stop() { listener_.Stop(); }

  // 0: it does not serve.
  uint16_t port() const { return listener_.port(); }

 private:
  const std::shared_ptr<TlsContexts> tls_;
  std::unique_ptr<HttpPages> pages_;  // null: it does not serve
  HttpListener listener_;             // whose thread ends before the pages go
};

}  // namespace varve
