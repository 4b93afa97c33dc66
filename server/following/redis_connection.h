// The connection of a follower to a Redis: what arrives is read through a buffer, as lines, as an
// RDB, or as a stream of requests. While it waits, and at least once a second while much arrives,
// it gives a sign of life, without which Redis ends the connection.
//
// Errors are Unavailable when the connection is lost or nothing was heard for a minute, and
// Cancelled once the link is to stop.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client_options.h"
#include "client/socket.h"
#include "util/redis_format/rdb_input.h"
#include "util/resp/resp_buffer.h"

namespace varve {

class RedisConnection final : public RdbInput {
 public:
  // `stop`, which outlives the connection, says that the link is to stop.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(
      const ClientOptions& options, const std::atomic<bool>* stop);

  // From now on `beat` is called about each second while the connection waits or receives. It may
  // send.
  using Beat = std::function<absl::Status()>;
  void set_beat(Beat beat) { beat_ = std::move(beat); }

  [[nodiscard]] absl::Status Send(std::string_view bytes);
  // Reads the next line that is not empty, without CR and LF.
  [[nodiscard]] absl::Status ReadLine(std::string* line);
  // Waits until more has arrived than the buffer holds.
  [[nodiscard]] absl::Status Receive();
  // Takes what has arrived, without waiting.
  [[nodiscard]] absl::Status ReceiveWhatIsThere();

  // --- What has arrived and was not consumed -----------------------------------------------------
  ByteBuffer* buffer() { return &buffer_; }
  [[nodiscard]] absl::StatusOr<std::string_view> Peek(size_t wanted) override;
  void Consume(size_t bytes) override;
  uint64_t offset() const override { return offset_; }
  absl::Status Damaged(std::string_view what) const override;

  // Returns when something arrived last.
  std::chrono::steady_clock::time_point last_io() const { return last_io_; }
  const std::string& address() const { return address_; }

 private:
  RedisConnection(Socket socket, std::string address, const std::atomic<bool>* stop);

  // Returns how many bytes there were; 0: none at present.
  absl::StatusOr<size_t> TryReceive();
  absl::Status BeatIfDue();
  absl::Status Lost(const absl::Status& why) const;

  Socket socket_;
  const std::string address_;
  const std::atomic<bool>* const stop_;
  Beat beat_;
  bool beating_ = false;
  ByteBuffer buffer_;
  uint64_t offset_ = 0;
  std::chrono::steady_clock::time_point last_io_;
  std::chrono::steady_clock::time_point last_beat_;
};

}  // namespace varve
