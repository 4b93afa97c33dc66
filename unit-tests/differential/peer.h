// One of the two servers of the differential test: a connection that carries pipelined requests and
// gives back each reply as the bytes it came in.
//
// Thread-safety: a peer belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "unit-tests/differential/command_generator.h"
#include "unit-tests/testing/server_process.h"
#include "util/resp/resp_buffer.h"

namespace varve::differential {

class Peer {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Peer>> Connect(const std::string& name,
                                                                     uint16_t port);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The requests in one go; their replies are to be received before the next Send.
  [[nodiscard]] absl::Status Send(absl::Span<const CommandLine> lines);
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Receive(size_t replies);

 private:
  Peer(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}

  const std::string name_;
  const int descriptor_;
  std::string in_;
};

// A redis-server without persistence on a free port, its files in `directory`; null if the program
// can't be started.
struct RedisServer {
  std::unique_ptr<testing::Process> process;
  uint16_t port = 0;
};
RedisServer StartRedis(const std::string& program, const std::string& directory,
                       const std::vector<std::string>& arguments = {});

// A program that is in PATH, or a path to it.
bool ProgramExists(const std::string& program);

}  // namespace varve::differential
