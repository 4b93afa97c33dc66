// What a connection has said of its next transaction: the keys it watches (WATCH) and the requests it has queued (MULTI). Belongs to
// whoever executes for the connection.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/request_batch.h"
#include "type/options.h"

namespace varve {

// Requests and keys that one connection may have queued, in memory; as much as one batch may write.
inline constexpr size_t kMaxQueuedBytes = kMaxBatchBytes;
// Keys that one connection may watch, each counted with kBytesPerWatchedKey more.
inline constexpr size_t kMaxWatchedBytes = 16u << 20;
inline constexpr size_t kBytesPerWatchedKey = 128;

// A copy of a request. Movable: its arguments stay where they are.
class QueuedRequest {
 public:
  QueuedRequest(const Command* command, Arguments arguments);

  const Command& command() const { return *command_; }
  Arguments arguments() const { return arguments_; }
  static size_t BytesOf(Arguments arguments);

 private:
  const Command* command_;
  std::unique_ptr<char[]> bytes_;
  std::vector<std::string_view> arguments_;
};

// A key as it was when it was watched.
struct WatchedKey {
  NamespaceId space = kDefaultNamespace;
  std::string key;
  SequenceNumber read_sequence = kNoSequence;
  bool found = false;
  SequenceNumber version = kNoSequence;  // where it was found
};

struct ClientTransaction {
  bool open = false;     // between MULTI and its end
  bool refused = false;  // a request could not be queued: EXEC will execute none
  std::vector<QueuedRequest> requests;
  std::vector<WatchedKey> watched;
  size_t queued_bytes = 0;
  size_t watched_bytes = 0;

  size_t bytes() const { return queued_bytes + watched_bytes; }
};

}  // namespace varve
