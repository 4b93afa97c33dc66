// A caller calls one operation after the other on a few keys that it shares with others, and
// records when each was called, when it was done, and its result: lines for a checker of
// linearizability (linearizability/check.go, which says how they read).
//
// Thread-safety: one thread at a time uses a caller, but for OnlySets() and acknowledged(), which
// any thread may call while Run() is under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/client.h"
#include "unit-tests/prove/feed_order.h"

namespace varve::prove {

// The time of the histories, in nanoseconds.
int64_t HistoryNow();

// One operation: its result, or nothing when the reply was lost.
struct Operation {
  int64_t call = 0;
  int64_t done = 0;
  std::string words;   // kind, key and arguments
  std::string result;  // empty: unknown
  std::string key;
  FeedCall feed;  // its kind and values

  bool is_acknowledged_write() const {
    return feed.kind != FeedCall::Kind::kGet && !result.empty() && result != "0";
  }
};

// What all callers may know: the value that somebody saw last.
struct LastSeen {
  explicit LastSeen(size_t keys) : values(keys) {}

  std::vector<std::atomic<uint64_t>> values;  // by key; 0: none
};

// The operations of a caller: all kinds on the shared keys, or SET alone, each on a key of its own.
enum class CallerKind : uint8_t { kShared, kOwnKeys };

class Caller {
 public:
  // Requires: `seen` outlives the caller; no other caller of the history has the id.
  Caller(size_t id, uint64_t seed, LastSeen* seen, CallerKind kind = CallerKind::kShared)
      : id_(id), kind_(kind), random_(seed * 1000 + id), seen_(seen) {}

  // Calls until the connection is lost, when the operation under way stays without a result, or the
  // server says that it is no primary. Internal: an answer that must not be.
  absl::Status Run(Client* client) ABSL_LOCKS_EXCLUDED(mutex_);
  // From the return on, whatever is called is a SET.
  void OnlySets() ABSL_LOCKS_EXCLUDED(mutex_);

  // Whatever was under way took effect before `death`, or never.
  void Died(int64_t death);

  const std::vector<Operation>& operations() const { return operations_; }
  // How many writes were acknowledged. Any thread may ask.
  uint64_t acknowledged() const { return acknowledged_.load(); }
  // Adds the calls for the key.
  void AddCalls(const std::string& key, std::vector<FeedCall>* calls) const;
  void Write(std::vector<std::string>* lines) const;

 private:
  enum class Kind : uint8_t { kGet, kSet, kDelete, kCompareAndSet };

  // Decides what comes next, and notes the time of the call.
  Kind Begin(Operation* operation) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CallOnce(Client* client, Operation* operation);
  absl::Status Get(Client* client, size_t key, Operation* operation);
  absl::Status Set(Client* client, Operation* operation);
  absl::Status Delete(Client* client, Operation* operation);
  absl::Status CompareAndSet(Client* client, uint64_t seen, Operation* operation);
  std::string NewNumber();

  const size_t id_;
  const CallerKind kind_;
  std::mt19937_64 random_;
  LastSeen* const seen_;
  uint64_t last_number_ = 0;
  std::vector<Operation> operations_;
  std::atomic<uint64_t> acknowledged_{0};
  absl::Mutex mutex_;
  bool only_sets_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve::prove
