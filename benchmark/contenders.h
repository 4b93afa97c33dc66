// The servers that server_benchmark compares, started with equal durability, each with its own port and directory.
//
// Varve: server_main beside this program. Redis: Debian's redis-server with its append-only file (appendfsync as
// Varve's --sync), no snapshots, and no rewriting of the file during the run (which would fork and cost it throughput).
// Null: null_server.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmark/process.h"

namespace varve::bench {

struct Contender {
  std::string id;     // as in --servers
  std::string title;  // as in the table
};

// Varve first.
const std::vector<Contender>& AllContenders();

// A started server that answers. It is paused but while it is measured, so that what it does in the background costs no
// other.
class Server {
 public:
  // `sync` is always, everysec or no; `extra` are further flags for it.
  Server(const Contender& contender, const std::string& sync, size_t value_size, const std::string& directory,
         const std::vector<std::string>& extra);
  ~Server();

  const Contender& contender() const { return contender_; }
  uint16_t port() const { return port_; }
  Child& process() { return *process_; }

 private:
  const Contender contender_;
  const std::string directory_;
  const uint16_t port_;
  std::unique_ptr<Child> process_;
};

}  // namespace varve::bench
