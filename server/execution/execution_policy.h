// The execution policy decides on which thread a batch of requests runs.
//   - Where it was read, as a rule: handing it over costs more than a GET does
//     (docs/decisions/0042), and what one round brings in is committed and pushed together.
//   - On the pool, when it may run long or may sleep: slow commands, large values, reads that go to
//     the disk, writes while the store is behind.
//   - On either, when the reads of one round are worth more than kHelperNanos for several threads:
//     then helpers from the pool take batches from the round's end while the I/O thread takes them
//     from its front (server/net/round_helpers.h). Writes are not shared: they would wait for each
//     other's commits.
// What a key costs is measured as the server runs (KeyCost).
//
// Thread-safety: functions are pure; KeyCost may be used on any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "server/requests/request_batch.h"
#include "type/server_options.h"

namespace varve {

enum class Placement : uint8_t {
  kInline,       // on the I/O thread
  kPool,         // on a worker
  kMaintenance,  // on the thread for commands that wait for background work
};

inline constexpr int64_t kInlineBudgetNanos = 100'000;  // of a batch
inline constexpr int64_t kInlineKeyNanos = 10'000;      // of a key: dearer ones wait for the disk
// Copying and checksumming more than this takes longer than the budget, however few keys it is.
inline constexpr size_t kInlineInputBytes = 64u << 10;

// Nanoseconds of work that a helper has to take off the I/O thread to be worth waking.
inline constexpr int64_t kHelperNanos = 100'000;

// A moving average of what one key costs, in nanoseconds.
class KeyCost {
 public:
  explicit KeyCost(int64_t initial_nanos) : nanos_(initial_nanos) {}
  int64_t nanos() const { return nanos_.load(std::memory_order_relaxed); }
  // `keys` of them took `nanos` together. Weighs the new figure 1/16, and at most four times the
  // old one: a thread that lost its core meanwhile must not look like a disk. A lost update between
  // threads does no harm.
  void Measured(int64_t nanos, int64_t keys) {
    const int64_t old = nanos_.load(std::memory_order_relaxed);
    const int64_t bounded = std::min({nanos / keys, 4 * old + 64, 16 * kInlineKeyNanos});
    nanos_.store(old + (bounded - old) / 16, std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> nanos_;
};

// The costs of a key that is read, and of one that is written.
struct KeyCosts {
  KeyCost read{400};
  KeyCost write{600};
};

// Returns where a batch runs. `writers_wait`: the store's pressure is above kFreePressure, so a
// write may sleep.
inline Placement PlaceBatch(Execution execution, const RequestBatch& batch,
                            const KeyCost& read_cost, const KeyCost& write_cost,
                            bool writers_wait) {
  if (batch.maintenance) return Placement::kMaintenance;
  if (execution == Execution::kInline) return Placement::kInline;
  if (execution == Execution::kPool || batch.slow || (batch.writes > 0 && writers_wait))
    return Placement::kPool;
  if (batch.input_bytes > kInlineInputBytes) return Placement::kPool;
  int64_t estimate = 0, dearest = 0;
  const auto count = [&](int64_t keys, int64_t nanos) {
    estimate += keys * nanos;
    if (keys > 0) dearest = std::max(dearest, nanos);
  };
  count(batch.reads, read_cost.nanos());
  count(batch.writes, write_cost.nanos());
  return estimate > kInlineBudgetNanos || dearest > kInlineKeyNanos ? Placement::kPool
                                                                    : Placement::kInline;
}

// Returns how many workers should help with a round whose reads are worth so much together.
inline size_t WantedHelpers(int64_t nanos) {
  return static_cast<size_t>(nanos / (2 * kHelperNanos));
}

}  // namespace varve
