// The client transaction is the transaction that a connection prepares: the keys and ranges that it
// watches (WATCH, WATCHRANGE) and the requests that it has queued (MULTI).
//
// Thread-safety: a client transaction belongs to the thread that executes for the connection.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/requests/request_batch.h"
#include "varve/options.h"
#include "varve/range_watch.h"

namespace varve {

// The most memory for the queued requests of one connection: as much as one batch may write.
inline constexpr size_t kMaxQueuedBytes = kMaxBatchBytes;
// The most memory for the keys and ranges that one connection watches; each key counts
// kBytesPerWatchedKey more.
inline constexpr size_t kMaxWatchedBytes = 16u << 20;
inline constexpr size_t kBytesPerWatchedKey = 128;

// A queued request is a copy of a request. A move leaves its arguments where they are.
class QueuedRequest {
 public:
  QueuedRequest(const Command* command, Arguments arguments);

  const Command& command() const { return *command_; }
  Arguments arguments() const { return arguments_; }
  // Returns the memory that such a copy takes, with the overhead of its allocations and its element
  // in a growing vector.
  static size_t BytesOf(Arguments arguments);

 private:
  const Command* command_;
  std::unique_ptr<char[]> bytes_;
  std::vector<std::string_view> arguments_;
};

// A watched key records what WATCH read of a key.
struct WatchedKey {
  NamespaceId space = kDefaultNamespace;
  std::string key;
  SequenceNumber read_sequence = kNoSequence;
  bool found = false;
  SequenceNumber version = kNoSequence;  // of its value, if it was found

  using Name = std::pair<NamespaceId, std::string_view>;
  Name name() const { return {space, key}; }
  struct ByName {
    using is_transparent = void;
    bool operator()(const WatchedKey& one, const WatchedKey& other) const {
      return one.name() < other.name();
    }
    bool operator()(const WatchedKey& one, const Name& other) const { return one.name() < other; }
    bool operator()(const Name& one, const WatchedKey& other) const { return one < other.name(); }
  };
};
using WatchedKeys = std::set<WatchedKey, WatchedKey::ByName>;

// The most ranges that one connection watches; each counts kBytesPerWatchedRange beside its bounds.
inline constexpr size_t kMaxWatchedRanges = 1000;
inline constexpr size_t kBytesPerWatchedRange = 512;

// A watched range is a range of keys with the store's watch over it.
struct WatchedRange {
  NamespaceId space = kDefaultNamespace;
  std::string lower;
  std::string upper;  // empty: no end
  std::unique_ptr<RangeWatch> watch;
};

struct ClientTransaction {
  bool open = false;     // between MULTI and its end
  bool refused = false;  // a request could not be queued, so EXEC executes none
  std::vector<QueuedRequest> requests;
  WatchedKeys watched;
  std::vector<WatchedRange> watched_ranges;
  size_t queued_bytes = 0;
  size_t watched_bytes = 0;

  size_t bytes() const { return queued_bytes + watched_bytes; }
};

}  // namespace varve
