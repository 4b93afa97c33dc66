// A client of the server: one blocking connection. Calls can be pipelined: Send() several requests, then Receive() as many
// replies, in the same order. Not thread-safe: one thread at a time, any number of clients.
//
//   auto client = varve::Client::Connect("127.0.0.1", 7777);
//   if (!client.ok()) ...
//   absl::Status put = (*client)->Put("city:1", "Zürich West");
//   auto value = (*client)->Get("city:1");   // std::optional: missing is not an error
//
// Errors: Unavailable when the connection can't be had or is lost (the object is of no use afterwards; whether a request that was
// under way took effect is not known), DeadlineExceeded when the time is up, DataLoss and FailedPrecondition for what the server
// refused, with its words.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "type/reply.h"
#include "util/resp_buffer.h"

namespace varve {

// What Range() and Prefix() list.
struct RangeQuery {
  bool reverse = false;    // from the last key to the first
  bool keys_only = false;  // values stay empty
  int64_t offset = 0;      // keys to skip
  int64_t limit = -1;      // negative: all
};

class Client {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // `host` is a name or an address. `timeout` bounds the connecting and each later wait for the server; 0 waits for ever.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& host, uint16_t port, std::chrono::milliseconds timeout = std::chrono::milliseconds(0));
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // --- One call, one reply ----------------------------------------------------------------------------------------------
  [[nodiscard]] absl::Status Ping();
  [[nodiscard]] absl::Status Put(std::string_view key, std::string_view value);
  // Writes all of them or none.
  [[nodiscard]] absl::Status PutAll(absl::Span<const std::pair<std::string_view, std::string_view>> pairs);
  // Nothing when the key is missing.
  [[nodiscard]] absl::StatusOr<std::optional<std::string>> Get(std::string_view key);
  // How many of the keys there were.
  [[nodiscard]] absl::StatusOr<int64_t> Delete(absl::Span<const std::string_view> keys);
  // Keys between two bounds, each "-", "+", "[key" (included) or "(key" (excluded); `min` is the lower one also in reverse.
  [[nodiscard]] absl::StatusOr<Pairs> Range(std::string_view min, std::string_view max, const RangeQuery& query = {});
  [[nodiscard]] absl::StatusOr<Pairs> Prefix(std::string_view prefix, const RangeQuery& query = {});
  [[nodiscard]] absl::StatusOr<int64_t> Count(std::string_view min, std::string_view max);
  // Any command. An error reply is a Status, not a Reply.
  [[nodiscard]] absl::StatusOr<Reply> Call(absl::Span<const std::string_view> arguments);

  // --- Pipelining -------------------------------------------------------------------------------------------------------
  // Puts the request into the send buffer, which is sent by Receive(), Flush(), or when it is large.
  [[nodiscard]] absl::Status Send(absl::Span<const std::string_view> arguments);
  [[nodiscard]] absl::Status Flush();
  // The next reply, which may be an error reply.
  [[nodiscard]] absl::StatusOr<Reply> Receive();

 private:
  explicit Client(int descriptor) : descriptor_(descriptor) {}

  absl::StatusOr<Pairs> List(std::vector<std::string_view> arguments, const RangeQuery& query);
  absl::Status Broken(std::string_view what);

  int descriptor_;
  ByteBuffer out_;
  ByteBuffer in_;
  size_t wanted_ = 1;  // bytes that must be here before parsing is worth a try
};

}  // namespace varve
