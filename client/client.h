// A client of the server with one blocking connection, which it makes again when it is lost.
//
//   auto client = varve::Client::Connect("127.0.0.1", 7777);
//   if (!client.ok()) ...
//   absl::Status put = (*client)->Put("city:1", "Zürich West");
//   auto value = (*client)->Get("city:1");   // std::optional: missing is not an error
//
// Errors: Unavailable when no connection is to be had (nothing was done), Unknown when a write was
// sent and its reply was lost (it may have taken effect; it is never sent again unless you ask for
// it), DeadlineExceeded when the time is up; for what the server refused, its words and the codes
// of client/reply_status.h. client/pipeline.h has the same for many requests at a time,
// client/async_client.h without blocking.
//
// Thread-safety: One thread at a time uses a client; a program may have any number of clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/client_options.h"
#include "client/pipeline.h"
#include "type/reply.h"

namespace varve {

// The query of Range() and Prefix().
struct RangeQuery {
  bool reverse = false;        // from the last key to the first
  bool keys_only = false;      // values stay empty
  bool with_expiry = false;    // PairSink::pair learns when keys expire
  bool with_metadata = false;  // PairSink::metadata is called
  int64_t offset = 0;          // keys to skip
  int64_t limit = -1;          // negative: all
};

// A value, and the version of it that Client::PutIfVersion() asks for: a number that no other write
// has.
struct VersionedValue {
  std::string value;
  uint64_t version = 0;
};

class Client {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options);
  // One connection that is not made again: once lost, every call is Unavailable. `timeout` bounds
  // each wait; 0: it doesn't.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& host, uint16_t port,
      std::chrono::milliseconds timeout = std::chrono::milliseconds(0));

  // --- One call, one reply -----------------------------------------------------------------------
  [[nodiscard]] absl::Status Ping();
  [[nodiscard]] absl::Status Put(std::string_view key, std::string_view value);
  // Writes all of them or none.
  [[nodiscard]] absl::Status PutAll(
      absl::Span<const std::pair<std::string_view, std::string_view>> pairs);
  // Nothing when the key is missing.
  [[nodiscard]] absl::StatusOr<std::optional<std::string>> Get(std::string_view key);
  // Read, decide, write without a lock: a value is replaced only if it still has the version that
  // was read. Whatever writes a key, also its expiry alone, gives it another version; 0 is that of
  // a missing key.
  [[nodiscard]] absl::StatusOr<std::optional<VersionedValue>> GetWithVersion(std::string_view key);
  // The new version; nothing, and nothing was written, when the key has another one than `version`.
  [[nodiscard]] absl::StatusOr<std::optional<uint64_t>> PutIfVersion(std::string_view key,
                                                                     std::string_view value,
                                                                     uint64_t version);
  // How many of the keys there were.
  [[nodiscard]] absl::StatusOr<int64_t> Delete(absl::Span<const std::string_view> keys);
  // Keys between two bounds, each "-", "+", "[key" (included) or "(key" (excluded); `min` is the
  // lower one also in reverse.
  [[nodiscard]] absl::StatusOr<Pairs> Range(std::string_view min, std::string_view max,
                                            const RangeQuery& query = {});
  [[nodiscard]] absl::StatusOr<Pairs> Prefix(std::string_view prefix, const RangeQuery& query = {});
  [[nodiscard]] absl::StatusOr<int64_t> Count(std::string_view min, std::string_view max);
  // Any command. An error reply is a Status, not a Reply.
  [[nodiscard]] absl::StatusOr<Reply> Call(absl::Span<const std::string_view> arguments,
                                           WhenLost when_lost = WhenLost::kByCommand);

  // --- Ranges of any length ----------------------------------------------------------------------
  // Takes one pair of a range after the other, from one snapshot, without having them all in
  // memory.
  struct PairSink {
    std::function<void(uint64_t pairs)> begin;  // how many there will be; may be empty
    // False: enough. `expires_at_ms`: milliseconds since the epoch; 0: never, or not asked for.
    std::function<bool(std::string&& key, std::string&& value, uint64_t expires_at_ms)> pair;
    // Called before `pair` for a key that has metadata. Requires: it is set if the query asks.
    std::function<void(std::string&& metadata)> metadata = {};
  };
  // OK also when the sink had enough. An error in the middle: the sink has seen a part; go on
  // behind its last key.
  [[nodiscard]] absl::Status StreamRange(std::string_view min, std::string_view max,
                                         const RangeQuery& query, const PairSink& sink);
  [[nodiscard]] absl::Status StreamPrefix(std::string_view prefix, const RangeQuery& query,
                                          const PairSink& sink);

  // --- Pipelining --------------------------------------------------------------------------------
  // As in client/pipeline.h; Unavailable, and nothing is queued, once the connection is closed for
  // good.
  [[nodiscard]] absl::Status Send(absl::Span<const std::string_view> arguments);
  // The next reply, which may be an error reply.
  [[nodiscard]] absl::StatusOr<Reply> Receive() { return pipeline_->Receive(); }
  Pipeline& pipeline() { return *pipeline_; }

 private:
  explicit Client(std::unique_ptr<Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}

  absl::StatusOr<Pairs> List(std::vector<std::string_view> arguments, RangeQuery query);
  absl::Status Stream(std::vector<std::string_view> arguments, const RangeQuery& query,
                      const PairSink& sink);

  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace varve
