// A Redis session is one connection of a follower to its Redis, from the greeting to its end.
//
//   PING, AUTH, REPLCONF      the greeting
//   PSYNC replid offset+1     "+CONTINUE": the stream goes on where it was
//                             "+FULLRESYNC replid offset": a copy (RDB) comes first
//   $<bytes> or $EOF:<mark>   then the copy, which replaces what the store holds
//   commands                  without end; each second, and when asked, REPLCONF ACK offset
//
// An acknowledged offset is one up to which everything is as durable here as the store's mode
// promises, so WAIT on the Redis waits for this server's disk.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/execution/server_state.h"
#include "server/following/command_stream.h"
#include "server/following/redis_connection.h"
#include "server/following/redis_primary.h"
#include "server/following/redis_report.h"
#include "server/following/skipped_keys.h"

namespace varve {

// The place of a follower in the stream of a Redis.
struct RedisPosition {
  std::string replid;  // empty: nowhere
  int64_t offset = 0;  // the last byte whose command is executed
};

// The parts of a link that outlive its sessions.
struct RedisLinkParts {
  ServerState* server = nullptr;
  const RedisPrimary* primary = nullptr;
  CommandStream* stream = nullptr;
  RedisPosition* position = nullptr;
  SkippedKeys* skipped = nullptr;
  RedisReport* report = nullptr;
  std::function<void()> tell;  // called where the report changes, and each second
  const std::atomic<bool>* stop = nullptr;
};

class RedisSession {
 public:
  // Requires: `parts`, and what it points to, outlive the session.
  explicit RedisSession(const RedisLinkParts& parts) : parts_(parts) {}

  // Follows the Redis until the connection ends, and returns why: Cancelled if the link is to stop,
  // Aborted if the store refused a write, DataLoss if what came makes no sense, and other errors of
  // the connection or the Redis.
  [[nodiscard]] absl::Status Run();
  // Returns whether it has come to the stream.
  bool was_up() const { return was_up_; }

 private:
  absl::Status Connect();
  absl::Status Greet();
  // Sends a request and reads the first line of the reply into answer_.
  absl::Status Ask(std::initializer_list<std::string_view> words);
  // Returns whether a copy comes first.
  absl::StatusOr<bool> BeginSync();
  absl::Status TakeCopy();
  // Reads the copy; `mark` stands behind one whose size is not known.
  absl::Status ReadCopy(uint64_t size, std::string_view mark);
  absl::Status FollowStream();
  absl::Status Acknowledge();
  // Notes when the Redis was heard of, and tells of all that is in the report.
  void Tell();

  const RedisLinkParts& parts_;
  std::unique_ptr<RedisConnection> connection_;
  std::string answer_;
  RedisPosition copy_position_;  // that of the copy that is being taken
  int64_t received_ = 0;         // the last byte of the stream that was taken
  bool was_up_ = false;
};

}  // namespace varve
