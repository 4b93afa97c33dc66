// Looks again and again, while servers work, at what their processes and directories take, and
// finds what is above a limit.
//
// Thread-safety: one thread watches; figures are asked for when it has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "unit-tests/prove/soak/findings.h"

namespace varve::prove {

struct WatchedServer {
  std::string name;
  pid_t process = 0;
  std::string directory;
  uint64_t memory_limit = 0;  // bytes that may be resident; 0: any number
  uint64_t disk_limit = 0;    // bytes that the directory may take
};

// What a server took at one look, or at most.
struct Usage {
  uint64_t resident = 0;  // bytes
  uint64_t disk = 0;      // bytes
  uint64_t descriptors = 0;
  uint64_t threads = 0;
};

// Returns what the server takes now.
Usage LookAt(const WatchedServer& server);

class ResourceWatch {
 public:
  // Requires: `findings` outlives the watch, and the servers run until it ends.
  ResourceWatch(std::vector<WatchedServer> servers, Findings* findings);

  void Run(const absl::Notification& ended);

  uint64_t looks() const { return looks_; }
  // By server: the most of each, and what there was at the first look under load.
  const std::vector<Usage>& peaks() const { return peaks_; }
  const std::vector<Usage>& firsts() const { return firsts_; }

 private:
  void Look(size_t index);  // at one of the servers

  const std::vector<WatchedServer> servers_;
  Findings& findings_;
  uint64_t looks_ = 0;
  std::vector<Usage> peaks_;
  std::vector<Usage> firsts_;
};

}  // namespace varve::prove
