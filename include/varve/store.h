// What the server speaks to: an ordered, durable key-value store. The embedded StorageEngine is the
// default; a store that lives elsewhere can stand in its place. All functions are thread-safe.
//
// Early visibility, gated replies: a submitted write is visible at once, also to readers that would
// have to give it back after a crash. Whoever lets a result out of the process first waits until
// the sequence it depends on is durable: the blocking calls below do so; a server uses Submit and
// Get with `wait_until_durable = false`, collects the highest `durable_after` of a reply and parks
// the reply until durable_sequence() has reached it. Writes in modes without sync have no gate;
// PushUnsynced() stands in for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "varve/iterator.h"
#include "varve/namespace.h"
#include "varve/options.h"
#include "varve/snapshot.h"
#include "varve/write_batch.h"

namespace varve {

// What a point read found. Missing is an answer, not an error.
struct ReadResult {
  bool found = false;
  bool expired = false;                  // not found, because its time is over: at expiry_ms
  uint64_t expiry_ms = 0;                // milliseconds since the epoch; 0: never
  SequenceNumber version = kNoSequence;  // of the value found
  size_t value_size = 0;                 // in bytes
  // The point in time of the read, for WriteBatch::RequireUnchanged.
  SequenceNumber read_sequence = kNoSequence;
  // durable_sequence() must reach this before the result may be let out.
  SequenceNumber durable_after = kNoSequence;
  // There may be a value of more than ReadOptions::max_value_bytes; the rest means nothing.
  bool too_large = false;
};

// One answer of a MultiGet. `value` is reused: its memory is kept between calls.
struct MultiGetResult {
  ReadResult result;
  std::string value;
  absl::Status status;  // a key that can't be read doesn't fail the others
  // false: ReadOptions::max_bytes was reached before this key, the rest means nothing.
  bool read = true;
};

struct CommitResult {
  SequenceNumber sequence = kNoSequence;  // of the batch's last operation
  // As in ReadResult; kNoSequence where the mode asks for no sync.
  SequenceNumber durable_after = kNoSequence;
};

struct CountResult {
  uint64_t keys = 0;
  uint64_t bytes = 0;                          // of keys and values together
  SequenceNumber durable_after = kNoSequence;  // as in ReadResult
};

// Where a read went, step by step (Store::ExplainGet).
struct ExplainedStep {
  std::string what;
  uint64_t nanos = 0;
  uint64_t disk_reads = 0;
};
struct ExplainedRead {
  ReadResult result;
  uint64_t value_bytes = 0;
  uint64_t tables_probed = 0;  // of segments whose key range covers the key
  uint64_t disk_reads = 0;
  uint64_t cache_hits = 0;
  uint64_t nanos = 0;
  std::vector<ExplainedStep> steps;
};

// How much the background is behind: 0 at rest, 1 when writes should wait. The server moves batches
// with writes to its pool when it is above kFreePressure, since such a write may sleep.
using Pressure = double;
inline constexpr Pressure kFreePressure = 0.5;

// See Store::BeginExclusiveWrite. Ends when it is destroyed, by any thread.
class ExclusiveWrite {
 public:
  virtual ~ExclusiveWrite() = default;
};

class Store {
 public:
  virtual ~Store() = default;

  // --- Reads -------------------------------------------------------------------------------------
  // The value goes into `*value` (replacing it). DataLoss names file and offset of what is damaged.
  [[nodiscard]] virtual absl::StatusOr<ReadResult> Get(const ReadOptions& options,
                                                       std::string_view key,
                                                       std::string* value) = 0;
  // Reads like Get with wait_until_durable = false, and tells what was looked at and what that
  // cost. For people: slower than Get.
  [[nodiscard]] virtual absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                                                 std::string_view key) = 0;
  // All keys at one snapshot; `results` has as many elements as `keys`. Fails as a whole only when
  // the store is closed. The first key is always read, those that follow as long as the values have
  // less than ReadOptions::max_bytes.
  [[nodiscard]] virtual absl::Status MultiGet(const ReadOptions& options,
                                              absl::Span<const std::string_view> keys,
                                              absl::Span<MultiGetResult> results) = 0;
  // Bounds in user keys: [lower, upper); an empty `upper` means no end. `*durable_after` (if not
  // null) as in ReadResult; what the iterator leaves out because it has expired may need a later
  // one, see Iterator::durable_after().
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                                std::string_view upper,
                                                SequenceNumber* durable_after) = 0;
  // Never null. Where there was no memory for one, reads through it fail with ResourceExhausted.
  virtual std::shared_ptr<const Snapshot> GetSnapshot() = 0;
  // Exact number of keys in [lower, upper). That of all keys costs little: the looking up of what
  // was written since it was last asked for and not merged or settled in the background since then
  // (up to some scans' time). A range, or a snapshot, is read.
  [[nodiscard]] virtual absl::StatusOr<CountResult> Count(const ReadOptions& options,
                                                          std::string_view lower,
                                                          std::string_view upper) = 0;

  // The clock by which keys expire, in milliseconds since the epoch (db/expiry/store_clock.h).
  virtual uint64_t NowMillis() const = 0;
  // Operations written since the store was opened and before it, less those with which it removed
  // what had expired since it was opened: a difference of two counts is what was changed in between
  // by those who write.
  virtual uint64_t ChangeCount() const = 0;

  // --- Writes ------------------------------------------------------------------------------------
  // Commits the batch and waits until it is as durable as its mode promises. Aborted: a condition
  // failed, nothing was written. ResourceExhausted: the disk is full, there is no memory, or a
  // namespace's quota is reached (NamespaceIsFull); nothing was written. Unavailable: the log
  // failed; the write may or may not survive.
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Write(const WriteOptions& options,
                                                           WriteBatch* batch) = 0;

  // The mode of writes from now on that don't bring their own.
  virtual void SetSync(Durability sync) = 0;

  // Commits the batch without waiting: visible on return, on its way to disk after the next Push(),
  // or WaitUntilDurable() of its gate.
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Submit(const WriteOptions& options,
                                                            WriteBatch* batch) = 0;
  // Sends what was submitted on its way: wakes the log thread for `always` writes, hands the others
  // to the kernel. Once per round of an event loop; without it nothing submitted is ever
  // acknowledged.
  virtual absl::Status Push() = 0;
  // Hands to the kernel what anybody submitted in a mode without sync. Whoever read with
  // `wait_until_durable = false` calls it before letting results out: a value is visible before it
  // is with the kernel, and a crash of the process in between takes it back. Costs two loads when
  // there is nothing to do. When it fails, nothing that was read may be let out, unless the read
  // began after a listener had been told of the failure: then it showed only what is durable.
  [[nodiscard]] virtual absl::Status PushUnsynced() = 0;

  // Commits without waiting and calls `done` when the write is as durable as its mode promises (or
  // failed). `done` runs on the thread that synced, or inside this call when nothing is to wait
  // for: it must be short and must not call the store.
  virtual void WriteAsync(const WriteOptions& options, WriteBatch* batch,
                          std::function<void(absl::StatusOr<CommitResult>)> done) = 0;

  // Reads and writes again until no other writer came between (optimistic; after some tries alone).
  // `decide` may run several times: it reads what is there now and fills the batch, including its
  // RequireUnchanged conditions. Submit semantics (doesn't wait).
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Update(
      const WriteOptions& options, absl::Span<const std::string_view> keys,
      absl::FunctionRef<absl::Status(WriteBatch*)> decide) = 0;

  // Waits until nobody else has the turn, and takes it: as long as the returned object lives,
  // writes without it in their options wait. For those who found no other way past conflicts
  // (include/varve/transaction.h): everybody's writes wait for this one. Whoever has the turn
  // writes with it alone, and waits for nobody who may be writing. Never null; must go before its
  // store.
  virtual std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() = 0;
  // --- Namespaces --------------------------------------------------------------------------------
  // What there is now. A WriteBatch creates, alters, drops and swaps them.
  [[nodiscard]] virtual absl::StatusOr<NamespaceList> Namespaces() const = 0;
  // Cheap. Reads and writes of one that there isn't fail with NoSuchNamespace
  // (include/varve/namespace_status.h).
  virtual bool HasNamespace(NamespaceId space) const = 0;
  // When a key that is put there now without an expiry of its own is to expire
  // (NamespaceOptions::default_expiry_ms); kNoExpiry: never. For WriteBatch::UseNamespace: a write
  // obeys the option if whoever makes it asks. Cheap.
  virtual uint64_t UsualExpiry(NamespaceId space) const = 0;

  // --- Durability --------------------------------------------------------------------------------
  // Every write up to here is on disk. After the log has failed it stays where it was.
  virtual SequenceNumber durable_sequence() const = 0;
  // OK, or why writes are refused for good (a failed fsync, an I/O error of the log).
  [[nodiscard]] virtual absl::Status log_status() const = 0;
  // Calls `listener` with each key that was removed because its time is over, once the removal is
  // submitted: on any thread, under locks of the store. It must be short and must not call the
  // store. `durable_after` as in ReadResult. Empty: nobody is told; returns once the listener
  // before is not called any more.
  using ExpiryListener =
      std::function<void(NamespaceId space, std::string_view key, SequenceNumber durable_after)>;
  virtual void SetExpiryListener(ExpiryListener listener) = 0;
  // Calls `listener`, on the thread that synced, each time durable_sequence() or log_status()
  // changed. It must be short and must not call the store. Returns a token for
  // RemoveDurabilityListener, after which it is not called any more.
  virtual uint64_t AddDurabilityListener(std::function<void()> listener) = 0;
  virtual void RemoveDurabilityListener(uint64_t token) = 0;
  // Waits until durable_sequence() >= `sequence`; fails when the log has failed.
  [[nodiscard]] virtual absl::Status WaitUntilDurable(SequenceNumber sequence) = 0;
  // Puts on this thread on disk what waits for that, if nobody is at it: then listeners have been
  // called, whatever became of it. False, at once: somebody is, or nothing waits.
  virtual bool TrySync() = 0;
  // Puts everything written so far on disk, whatever its mode.
  [[nodiscard]] virtual absl::Status Sync() = 0;

  // --- Upkeep ------------------------------------------------------------------------------------
  // Writes buffered records to segments; merges [lower, upper) (empty `upper`: no end) down to one
  // run. Both wait.
  [[nodiscard]] virtual absl::Status Flush() = 0;
  [[nodiscard]] virtual absl::Status Compact(std::string_view lower, std::string_view upper,
                                             NamespaceId space = kDefaultNamespace) = 0;
  virtual Pressure pressure() const = 0;
  // Name and value of every figure the store keeps, in a fixed order (docs/operations.md lists
  // them). None where there is no memory.
  virtual std::vector<std::pair<std::string, uint64_t>> Statistics() const = 0;

  // Finishes background work, syncs, and records a clean end. Later calls fail. Also called by the
  // destructor.
  [[nodiscard]] virtual absl::Status Close() = 0;
};

}  // namespace varve
