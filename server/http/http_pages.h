// The pages that the server serves over HTTP: what each path answers. While the store is being
// opened there is no server yet, and the pages say so.
//
// Thread-safety: Answer() and Tick() run on the listener's thread; ServeFor() is called once, on
// any thread.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "server/execution/server_state.h"
#include "server/http/http_listener.h"
#include "type/server_options.h"

namespace varve {

class HttpPages {
 public:
  explicit HttpPages(const ServerOptions& options);

  // From now on the pages tell of this server.
  // Requires: it outlives the listener's thread.
  void ServeFor(ServerState* server);

  HttpReply Answer(const HttpRequest& request, const HttpPeer& peer);
  // Notes the server's load, once a second.
  void Tick();

 private:
  HttpReply Page(ServerState& server, const HttpRequest& request) const;
  HttpReply Metrics(ServerState& server, const HttpRequest& request) const;

  const std::vector<std::string> hosts_;
  const std::vector<std::string> prefixes_;
  std::atomic<ServerState*> server_{nullptr};
};

}  // namespace varve
