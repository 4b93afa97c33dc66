// Some servers that follow each other over links that can be cut, and that clients reach over links
// that can be cut, too. A server keeps its directory and its links when it is killed and started
// again, and gets another port.
//
// Thread-safety: one thread at a time uses the servers; links may be used by any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "unit-tests/prove/failover/proxy.h"
#include "unit-tests/testing/server_process.h"

namespace varve::prove {

class Servers {
 public:
  // `directory` exists, and is empty.
  Servers(std::string program, const std::string& directory, size_t count,
          std::vector<std::string> flags);
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  size_t size() const { return nodes_.size(); }
  [[nodiscard]] absl::Status Start(size_t server);
  // With SIGKILL; returns when it is gone.
  void Kill(size_t server);

  // Over which `follower` follows `primary`.
  Proxy& Link(size_t follower, size_t primary) { return *nodes_[primary].links[follower]; }
  // Over which clients reach the server.
  Proxy& Clients(size_t server) { return *nodes_[server].clients; }
  // Cuts the links between the server and the others, or restores them.
  void Isolate(size_t server);
  void Rejoin(size_t server);

  // Returns the reply as text; "(lost)" where there is none, "(nil)" for null.
  std::string Ask(size_t server, const std::vector<std::string>& words);
  // Returns "" where the field is missing.
  std::string Info(size_t server, const std::string& section, const std::string& field);
  [[nodiscard]] absl::Status Follow(size_t follower, size_t primary);
  [[nodiscard]] absl::Status Promote(size_t server);
  // Waits until the follower takes the primary's changes. Internal: it does not come to that.
  [[nodiscard]] absl::Status AwaitLink(size_t follower, size_t primary);
  // Waits until the follower has everything that the primary has.
  [[nodiscard]] absl::Status AwaitAll(size_t follower, size_t primary);

  const std::string& directory(size_t server) const { return nodes_[server].directory; }
  std::string log(size_t server) const;

 private:
  struct Node {
    std::string directory;
    std::unique_ptr<testing::ServerProcess> process;  // null: it does not run
    std::unique_ptr<Client> client;
    std::unique_ptr<Proxy> clients;
    std::vector<std::unique_ptr<Proxy>> links;  // by follower
  };

  absl::Status Say(size_t server, const std::vector<std::string>& words);

  const std::string program_;
  const std::vector<std::string> flags_;
  std::vector<Node> nodes_;
};

}  // namespace varve::prove
