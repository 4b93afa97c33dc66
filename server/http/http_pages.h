// The pages that the server serves over HTTP: what each path answers. While the store is being
// opened there is no server yet, and the pages say so.
//
// The pages that the web page reads are made for the reader: key names are for a user who may read
// all keys, clients and slow log for one who may execute the commands that show them.
//
// Thread-safety: Answer() and Tick() run on the listener's thread; ServeFor() is called once, on
// any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/execution/server_state.h"
#include "server/http/history.h"
#include "server/http/http_access.h"
#include "server/http/http_listener.h"
#include "type/server_options.h"
#include "varve/store_survey.h"

namespace varve {

class HttpPages {
 public:
  // `wake` has the listener look at its streams.
  explicit HttpPages(
      const ServerOptions& options, std::function<void()> wake = [] {});

  // From now on the pages tell of this server.
  // Requires: it outlives the listener's thread.
  void ServeFor(ServerState* server);

  HttpReply Answer(const HttpRequest& request, const HttpPeer& peer);
  // Returns how long the request waits before Answer() is called.
  std::chrono::milliseconds Delay(const HttpRequest& request, const HttpPeer& peer) const;
  // Notes the server's load, once a second.
  void Tick();

 private:
  using Time = std::chrono::steady_clock::time_point;

  HttpReply Page(ServerState& server, const HttpRequest& request, UserPointer reader);
  HttpReply Metrics(ServerState& server, const HttpRequest& request) const;
  HttpReply Status(ServerState& server, const HttpRequest& request) const;
  // Returns the map of the keys, which is made at most once a second.
  const KeyMap& Keys(const ServerState& server);

  const std::vector<std::string> hosts_;
  const std::vector<std::string> prefixes_;
  const std::function<void()> wake_;
  std::atomic<ServerState*> server_{nullptr};
  History history_;
  KeyMap keys_;
  Time keys_at_{};
};

}  // namespace varve
