// A Store is an ordered, durable key-value store as the server sees it. The embedded StorageEngine
// is the default; a store that runs in other processes can stand in its place.
//
// The interface comes in groups by who needs them: StoreReads, StoreWrites and StoreNamespaces
// (together StoreContents, which a transaction can stand in for), StoreDurability, StoreUpkeep,
// StoreWatches, StoreHistory and StoreChanges.
// A Store is all of them, and says with capabilities() which promises it keeps.
//
// Early visibility: a submitted write is visible at once, also to readers that would have to give
// it back after a crash. A program that lets a result out of the process first waits until the
// sequence it depends on is durable. The blocking calls do so themselves; a server uses Submit, and
// Get with `wait_until_durable = false`, collects the highest `durable_after` of a reply and parks
// the reply until durable_sequence() has reached it. Writes in modes without sync need no durable
// sequence; PushUnsynced() stands in for it. A store whose writes are durable when Submit returns
// answers kNoSequence everywhere.
//
// Calls that may wait have an asynchronous form with a callback (GetAsync, MultiGetAsync,
// CountAsync, ReadRangeAsync, WriteAsync). A store that answers from this process has the default
// ones, which do the work inside the call. A remote store never waits in them, since I/O threads
// call them; it may gather what it is asked until Push(), which an I/O thread calls once per round.
//
// Answered locally: HasNamespace, UsualExpiry, GroupsOf, NowMillis, IsAway, pressure, CheckData,
// durable_sequence, log_status, PushUnsynced, TrySync, PauseExpiry, VersionAt, InstantOf and
// capabilities are asked by I/O threads for each request or round. They never wait for another
// process, nor for a disk read; a remote store answers them, and Push(), from what it keeps up to
// date beside.
//
// Thread-safety: all functions are thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "varve/changes.h"
#include "varve/difference.h"
#include "varve/iterator.h"
#include "varve/key_group.h"
#include "varve/key_history.h"
#include "varve/namespace.h"
#include "varve/options.h"
#include "varve/range_watch.h"
#include "varve/read_result.h"
#include "varve/snapshot.h"
#include "varve/store_driver.h"
#include "varve/store_observation.h"
#include "varve/types.h"
#include "varve/write_batch.h"

namespace varve {

// The promises that a store keeps. The defaults are the embedded engine's. A call that needs a
// promise which the store does not keep fails with FailedPrecondition.
struct StoreCapabilities {
  // The keys that one batch may change and have conditions on.
  enum class Atomicity : uint8_t { kAnyKeys, kWithinGroup };

  // GetSnapshot() covers all keys; transactions and RequireRangeUnchanged need it.
  bool snapshots = true;
  Atomicity atomicity = Atomicity::kAnyKeys;
  bool constant_time_clone = true;         // WriteBatch::CloneNamespace
  bool constant_time_range_delete = true;  // WriteBatch::DeleteRange, also inside a batch
  bool exact_counts = true;                // Count() of a whole namespace is exact and cheap
  bool size_estimates = true;              // EstimateSize() knows about what a range has
  bool quotas = true;                      // NamespaceOptions::max_bytes and max_keys are kept
  bool swaps = true;                       // WriteBatch::SwapNamespaces
  bool history = false;                    // past states can be read
  bool remote = false;                     // calls wait for other processes
};

// How much the keys and values of all namespaces together have, beside the limit.
enum class DataCheck : uint8_t {
  kWithin,
  kOver,       // when they were last counted, and nothing was written since
  kMustCount,  // only StoreUpkeep::CountData() can tell
};

// The keys of a range, and the bytes that they and their values take.
struct RangeSize {
  uint64_t keys = 0;
  uint64_t bytes = 0;
  // The values among them that lie in segments written since compression was asked for: their plain
  // size, and the size that they have on disk.
  uint64_t plain_value_bytes = 0;
  uint64_t stored_value_bytes = 0;
};

// How much the background is behind: 0 at rest, 1 when writes should wait. The server moves batches
// with writes to its pool when it is above kFreePressure, since such a write may sleep.
using Pressure = double;
inline constexpr Pressure kFreePressure = 0.5;

// --- Reads ---------------------------------------------------------------------------------------

class StoreReads {
 public:
  virtual ~StoreReads() = default;

  // Puts the value into `*value`, replacing what it held. DataLoss names file and offset of what is
  // damaged.
  [[nodiscard]] virtual absl::StatusOr<ReadResult> Get(const ReadOptions& options,
                                                       std::string_view key,
                                                       std::string* value) = 0;
  // Reads all keys at one snapshot. Fails as a whole only when the store is closed. The first key
  // is always read, those that follow as long as the values have less than ReadOptions::max_bytes.
  // A key that can't be read, as its part of a remote store is away, has its status wherever it
  // stands.
  // Requires: `results` has as many elements as `keys`.
  [[nodiscard]] virtual absl::Status MultiGet(const ReadOptions& options,
                                              absl::Span<const std::string_view> keys,
                                              absl::Span<MultiGetResult> results) = 0;
  // Returns an iterator over the user keys in [lower, upper); an empty `upper` means no end.
  // `*durable_after`, unless it is null, is set as in ReadResult; entries that the iterator leaves
  // out because they have expired may need a later one, see Iterator::durable_after(). Never null.
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                                std::string_view upper,
                                                SequenceNumber* durable_after) = 0;
  // Never null. Where there was no memory for a snapshot, reads through it fail with
  // ResourceExhausted; where the store has none (StoreCapabilities::snapshots), with
  // FailedPrecondition.
  virtual std::shared_ptr<const Snapshot> GetSnapshot() = 0;
  // Returns the exact number of keys in [lower, upper). Counting all keys costs little: the store
  // looks up what was written since it was last asked and not merged in the background since then
  // (at most the time of some scans). A range, or a snapshot, is read.
  [[nodiscard]] virtual absl::StatusOr<CountResult> Count(const ReadOptions& options,
                                                          std::string_view lower,
                                                          std::string_view upper) = 0;
  // Reads like Get with wait_until_durable = false, and tells what was looked at and what that
  // cost. For people: slower than Get.
  [[nodiscard]] virtual absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                                                 std::string_view key) = 0;
  // Returns the clock by which keys expire, in milliseconds since the epoch. It never goes back.
  virtual uint64_t NowMillis() const = 0;
  // Returns whether the machine that has the key has not answered for a while: a call on the key
  // may take as long as its deadline, and whoever shares something among calls leaves more of it to
  // others. Answered locally.
  virtual bool IsAway(NamespaceId space, std::string_view key) const { return false; }
  // Has the calling thread drive the asynchronous calls that it makes, where other machines answer
  // them. `descriptor` wakes the thread as well. Null: the store is here, or drives its calls by
  // itself.
  // Requires: the thread has no driver of the store. The descriptor outlives the driver.
  virtual std::unique_ptr<StoreDriver> DriveOnThisThread(int descriptor) { return nullptr; }

  // The asynchronous forms answer through `done`, on any thread or inside the call; it must be
  // short. The store copies the options.
  // Requires: a snapshot in the options, and the store itself, outlive the call of `done`.
  using GetDone = std::function<void(absl::StatusOr<ReadResult> result, std::string value)>;
  virtual void GetAsync(const ReadOptions& options, std::string key, GetDone done);
  using MultiGetDone =
      std::function<void(absl::Status status, std::vector<MultiGetResult> results)>;
  virtual void MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                             MultiGetDone done);
  using CountDone = std::function<void(absl::StatusOr<CountResult> count)>;
  virtual void CountAsync(const ReadOptions& options, std::string lower, std::string upper,
                          CountDone done);
  // Reads the next entries of [lower, upper): at most `max_entries`, and no more once they hold
  // ReadOptions::max_bytes. The next slice begins behind the last entry: its key and a zero byte
  // are the next `lower`, or, in `descending` order, its key is the next `upper`. Slices are
  // consistent with each other if the options name a snapshot. With ReadOptions::deadline, a store
  // on other machines may end a slice early, even without an entry, and say that there is more,
  // where it has passed over very much that is gone.
  // Requires: max_entries > 0.
  struct RangeRequest {
    std::string lower;
    std::string upper;  // empty: no end
    bool descending = false;
    size_t max_entries = 1000;
  };
  using RangeDone = std::function<void(absl::StatusOr<RangeSlice> slice)>;
  virtual void ReadRangeAsync(const ReadOptions& options, RangeRequest range, RangeDone done);
};

// --- Writes --------------------------------------------------------------------------------------

// The exclusive right to write, which ends when it is destroyed, by any thread.
class ExclusiveWrite {
 public:
  virtual ~ExclusiveWrite() = default;
};

class StoreWrites {
 public:
  virtual ~StoreWrites() = default;

  // Commits the batch and waits until it is as durable as its mode promises. Aborted: a condition
  // failed, nothing was written. ResourceExhausted: the disk is full, there is no memory, or a
  // namespace's quota or the limit of all data is reached (NamespaceIsFull, StoreIsFull); nothing
  // was written. Unavailable: the log
  // failed; the write may or may not survive. FailedPrecondition: the batch asks for what the store
  // can't do (capabilities()), or is not within one group (CrossGroup); nothing was written.
  // Requires: no other thread uses the batch meanwhile. It is empty afterwards unless the commit
  // failed.
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Write(const WriteOptions& options,
                                                           WriteBatch* batch) = 0;
  // Commits the batch without waiting: visible on return, on its way to disk after the next Push(),
  // or WaitUntilDurable() of its `durable_after`.
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Submit(const WriteOptions& options,
                                                            WriteBatch* batch) = 0;
  // Commits without waiting and calls `done` when the write is as durable as its mode promises (or
  // failed). `done` runs on the thread that synced, or inside this call when nothing is to wait
  // for: it must be short and must not call the store.
  using WriteDone = std::function<void(absl::StatusOr<CommitResult> committed)>;
  virtual void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) = 0;
  // Reads and writes again until no other writer came between (optimistic; after some tries alone).
  // `decide` may run several times: it reads what is there now and fills the batch, including its
  // RequireUnchanged conditions. Doesn't wait, as Submit.
  [[nodiscard]] virtual absl::StatusOr<CommitResult> Update(
      const WriteOptions& options, absl::Span<const std::string_view> keys,
      absl::FunctionRef<absl::Status(WriteBatch*)> decide) = 0;
  // Waits until nobody else has the exclusive right to write, and takes it: as long as the returned
  // object lives, writes without it in their options wait. It is for a writer that found no other
  // way past conflicts (RunTransaction): everybody's writes wait for this one. Its holder writes
  // alone, and waits for nobody who may be writing. Never null.
  // Requires: it is destroyed before its store.
  virtual std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() = 0;
};

// --- Namespaces ----------------------------------------------------------------------------------

class StoreNamespaces {
 public:
  virtual ~StoreNamespaces() = default;

  // Returns what there is now. A WriteBatch creates, alters, drops and swaps namespaces.
  [[nodiscard]] virtual absl::StatusOr<NamespaceList> Namespaces() const = 0;
  // Returns whether the namespace exists; reads and writes of one that doesn't fail with
  // NoSuchNamespace (varve/namespace_status.h). Answered locally.
  virtual bool HasNamespace(NamespaceId space) const = 0;
  // Returns when a key that is put there now without an expiry of its own is to expire
  // (NamespaceOptions::default_expiry_ms); kNoExpiry: never. A writer that wants the option obeyed
  // passes it to WriteBatch::UseNamespace. Answered locally.
  virtual uint64_t UsualExpiry(NamespaceId space) const = 0;
};

// --- Contents: what a transaction can stand in for (Transaction::contents) -----------------------

class StoreContents : public StoreReads, public StoreWrites, public StoreNamespaces {
 public:
  // Answered locally, and always with the same answer.
  virtual StoreCapabilities capabilities() const = 0;
  // Returns how the keys of the namespace are grouped; nothing: it has no groups, and any keys may
  // be written together. Answered locally. By default no namespace has groups where the store
  // commits any keys together, and else each key is a group of its own.
  virtual std::optional<KeyGrouping> GroupsOf(NamespaceId space) const;
};

// --- Durability ----------------------------------------------------------------------------------

class StoreDurability {
 public:
  virtual ~StoreDurability() = default;

  // Every write up to here is on disk. After the log has failed it stays where it was. Answered
  // locally.
  virtual SequenceNumber durable_sequence() const = 0;
  // Returns OK, or why writes are refused for good (a failed fsync, an I/O error of the log).
  // Answered locally.
  [[nodiscard]] virtual absl::Status log_status() const = 0;
  // Sets the mode of writes from now on that don't bring their own.
  virtual void SetSync(Durability sync) = 0;
  // Sends what was submitted on its way: wakes the log thread for `always` writes, hands the others
  // to the kernel. An event loop calls it once per round; without it nothing submitted is ever
  // acknowledged.
  virtual absl::Status Push() = 0;
  // Hands to the kernel what anybody submitted in a mode without sync. A reader with
  // `wait_until_durable = false` calls it before letting results out: a value is visible before it
  // is with the kernel, and a crash of the process in between takes it back. Costs two loads when
  // there is nothing to do. When it fails, nothing that was read may be let out, unless the read
  // began after a listener had been told of the failure: then it showed only what is durable.
  [[nodiscard]] virtual absl::Status PushUnsynced() = 0;
  // Waits until durable_sequence() >= `sequence`; fails when the log has failed.
  [[nodiscard]] virtual absl::Status WaitUntilDurable(SequenceNumber sequence) = 0;
  // Puts on disk, on this thread, what waits for that, unless another thread is at it. Returns true
  // after that, and the listeners have been called, whatever became of it. Returns false at once if
  // another thread is at it or nothing waits.
  virtual bool TrySync() = 0;
  // Puts everything written so far on disk, whatever its mode.
  [[nodiscard]] virtual absl::Status Sync() = 0;
  // Calls `listener`, on the thread that synced, each time durable_sequence() or log_status()
  // changed. It must be short and must not call the store. Returns a token for
  // RemoveDurabilityListener, after which it is not called any more.
  virtual uint64_t AddDurabilityListener(std::function<void()> listener) = 0;
  // Requires: AddDurabilityListener gave `token`, and it was not removed yet.
  virtual void RemoveDurabilityListener(uint64_t token) = 0;
};

// --- Upkeep --------------------------------------------------------------------------------------

class StoreUpkeep {
 public:
  virtual ~StoreUpkeep() = default;

  // Writes buffered records to segments, and waits for it.
  [[nodiscard]] virtual absl::Status Flush() = 0;
  // Merges [lower, upper) (empty `upper`: no end) down to one run, whose values are compressed as
  // is set now, those kept apart from their keys among them, and waits for it.
  [[nodiscard]] virtual absl::Status Compact(std::string_view lower, std::string_view upper,
                                             NamespaceId space = kDefaultNamespace) = 0;
  // Answered locally.
  virtual Pressure pressure() const = 0;
  // Returns the operations written since the store was created, less those with which it removed
  // what had expired since it was opened: a difference of two counts is what writers changed in
  // between.
  virtual uint64_t ChangeCount() const = 0;
  // Returns name and value of every figure the store keeps, in a fixed order (docs/operations.md
  // lists them); none where there is no memory.
  virtual std::vector<std::pair<std::string, uint64_t>> Statistics() const = 0;
  // Returns what a monitor needs. Answered locally, also while the disk hangs and while writers
  // wait; a store that keeps no such figures returns empty ones.
  virtual StoreObservation Observe() const { return {}; }
  // Returns about how many keys [lower, upper) has (an empty `upper` means no end), and how many
  // bytes they and their values take: of the blocks of segments that may hold them, without a look
  // at the disk. What no segment holds yet is not counted. A store without
  // StoreCapabilities::size_estimates returns zeros. Answered locally.
  virtual RangeSize EstimateSize(NamespaceId space, std::string_view lower,
                                 std::string_view upper) const {
    return {};
  }
  uint64_t EstimateBytes(NamespaceId space, std::string_view lower, std::string_view upper) const {
    return EstimateSize(space, lower, upper).bytes;
  }
  // Refuses writes from now on that add to the keys and values of all namespaces together and
  // would make them more than `bytes`, as quotas count bytes (StoreIsFull). 0: no limit. A clone is
  // not refused.
  virtual void SetDataLimit(uint64_t bytes) {}
  // Returns whether the keys and values are within the limit, and still are after a batch of `more`
  // bytes. Answered locally.
  virtual DataCheck CheckData(uint64_t more) const { return DataCheck::kWithin; }
  // Counts these bytes exactly, as Count() counts the keys of each namespace.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountData() { return 0; }
  // Calls `listener` with each key that was removed because its time is over, once the removal is
  // submitted: on any thread, under locks of the store. It must be short and must not call the
  // store. `durable_after` as in ReadResult. An empty listener: nobody is told. Returns once the
  // listener before is not called any more.
  using ExpiryListener =
      std::function<void(NamespaceId space, std::string_view key, SequenceNumber durable_after)>;
  virtual void SetExpiryListener(ExpiryListener listener) = 0;
  // Removes nothing that has expired for so long from now on; zero ends that at once. Readers hide
  // what has expired as ever, and counts include it. A store that removes nothing by itself need
  // not do anything.
  virtual void PauseExpiry(std::chrono::milliseconds how_long) {}
  // Announces Close(): nobody waits for an answer any more. A store on other machines may refuse
  // all calls from now on but Push() and what is answered locally, and ends those early that go on
  // for long. Writes that it was given are finished.
  virtual void BeginClose() {}
  // Finishes background work, syncs, and records a clean end. Later calls fail. The destructor
  // calls it, too.
  // Requires: no iterator, snapshot or transaction of the store is left.
  [[nodiscard]] virtual absl::Status Close() = 0;
};

// --- Watches -------------------------------------------------------------------------------------

class StoreWatches {
 public:
  virtual ~StoreWatches() = default;

  // Begins a watch over the keys of [lower, upper) (an empty `upper`: no end). It costs writers
  // nothing, and the thread that flushes a look. Returns NoSuchNamespace if there is no such
  // namespace, and FailedPrecondition if the store can't watch.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<RangeWatch>> WatchRange(
      NamespaceId space, std::string_view lower, std::string_view upper);
};

// --- History -------------------------------------------------------------------------------------

// A purge found this of its key.
struct PurgeResult {
  bool found = false;    // there was anything of it, also only in the past
  bool existed = false;  // a reader of the present saw it
};

class StoreHistory {
 public:
  virtual ~StoreHistory() = default;

  // Returns the newest version that was committed at `instant_ms` (since the epoch) or earlier, to
  // the second; for old versions to the minute. NotFound: the instant is before the first version
  // whose time the store knows. FailedPrecondition: the store keeps no times. Answered locally.
  [[nodiscard]] virtual absl::StatusOr<SequenceNumber> VersionAt(uint64_t instant_ms) const;
  // Returns when the version was committed, in milliseconds since the epoch: never later than the
  // commit, and as exact as VersionAt(). NotFound: the store does not know. OutOfRange: there is no
  // such version yet. FailedPrecondition as above. Answered locally.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> InstantOf(SequenceNumber version) const;

  // Returns the oldest version of which the namespace can be read: the newest version if the
  // namespace keeps no history (EngineOptions::history). FailedPrecondition as above. Answered
  // locally.
  [[nodiscard]] virtual absl::StatusOr<SequenceNumber> FirstVersion(NamespaceId space) const;
  // Returns a snapshot that shows the namespace, and no other, as it was once `version` had been
  // written. Keys that had expired at `instant_ms` are gone in it; nothing: at the instant of the
  // version. Returns Trimmed (varve/history_status.h) if the version is older than FirstVersion(),
  // OutOfRange if there is no such version yet, and NoSuchNamespace if the namespace was not there.
  [[nodiscard]] virtual absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotAt(
      NamespaceId space, SequenceNumber version,
      std::optional<uint64_t> instant_ms = std::nullopt) const;
  // Returns the changes of the key as far as the namespace keeps them, at most the newest `most`;
  // with a snapshot, those that it sees.
  [[nodiscard]] virtual absl::StatusOr<KeyHistory> HistoryOf(
      NamespaceId space, std::string_view key, size_t most = SIZE_MAX,
      const Snapshot* snapshot = nullptr) const;
  // Returns the keys that are missing, each with the newest value that it had, as far as the
  // namespace keeps it. A key whose value has expired by now stays away. OutOfRange: they are more
  // than the request allows.
  [[nodiscard]] virtual absl::StatusOr<RemovedKeys> FindRemoved(
      const RemovedKeysRequest& request) const;
  // Returns the namespaces that were dropped and that the store remembers, oldest drop first: at
  // least those that can be read at a version before the drop. Answered locally.
  [[nodiscard]] virtual absl::StatusOr<std::vector<DroppedNamespace>> DroppedNamespaces() const;
  // Returns an iterator over the keys of [lower, upper) (an empty `upper`: no end) in which the
  // states differ. Returns NoSuchNamespace if a snapshot does not show its namespace.
  // Requires: the store gave the snapshots.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<DifferenceIterator>> NewDifferenceIterator(
      const ComparedState& a, const ComparedState& b, std::string_view lower,
      std::string_view upper) const;

  // Deletes the key, and removes all of its versions from the store's files before it returns:
  // values, expiries and the name of the key, in log files, too. Reads of the past find nothing of
  // the key any more, nor do readers of changes (StoreChanges), whose positions stay. Names that
  // begin or end a deleted range stay, and copies elsewhere (backups, COPY). An ingest that was not
  // committed yet keeps the key and may bring it back, as a later write. The purge rewrites up to
  // one segment of each run and the files with the key; one purge runs at a time. It calls
  // `deleted`, unless that is empty, once a key that was there is deleted, long before it returns.
  // FailedPrecondition: a clone holds the key, or this namespace is a clone and its source holds
  // it. Other errors may come after the key is deleted durably: what is left of it goes when the
  // caller asks again.
  // DeadlineExceeded: readers still use an old version or file.
  [[nodiscard]] virtual absl::StatusOr<PurgeResult> Purge(
      NamespaceId space, std::string_view key, const std::function<void()>& deleted = {});
};

// --- Changes -------------------------------------------------------------------------------------

// The change feed (varve/changes.h). A store that retains no changes answers FailedPrecondition.
class StoreChanges {
 public:
  virtual ~StoreChanges() = default;

  // Answered locally.
  [[nodiscard]] virtual absl::StatusOr<ChangePositions> GetChangePositions() const;
  // Returns an iterator behind the position `since`. It costs little to make, and holds no memory
  // to speak of before its first Next(). Trimmed: `since` is older than ChangePositions::first.
  // OutOfRange: there is no such version yet.
  // Requires: the store outlives it.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ChangeIterator>> NewChangeIterator(
      SequenceNumber since, const ChangeFilter& filter) const;
  // Calls `listener`, on a thread of the store, when more can be delivered than when it was called
  // last. It must be short and must not call the store. Returns a token for RemoveChangeListener,
  // after which it is not called any more.
  virtual uint64_t AddChangeListener(std::function<void()> listener) { return 0; }
  virtual void RemoveChangeListener(uint64_t token) {}

  // A feed is a place with a name. Its calls are durable on return. AlreadyExists, NotFound: as
  // usual. CreateFeed takes the name, position (kMaxSequence: now), namespace, prefix and bounds
  // from `place`; Trimmed and OutOfRange as for NewChangeIterator. While a feed exists, changes are
  // retained also where EngineOptions::changes retains none. AckFeed moves the place forward, never
  // back (OutOfRange: behind the newest version; FailedPrecondition: the feed is lost).
  // Requires: the calling thread holds no ExclusiveWrite.
  [[nodiscard]] virtual absl::Status CreateFeed(const FeedPlace& place);
  [[nodiscard]] virtual absl::Status AckFeed(std::string_view name, SequenceNumber version);
  [[nodiscard]] virtual absl::Status DropFeed(std::string_view name);
  // Returns all of them, ascending by name. Answered locally.
  virtual std::vector<FeedPlace> Feeds() const { return {}; }
};

class Store : public StoreContents,
              public StoreDurability,
              public StoreUpkeep,
              public StoreWatches,
              public StoreHistory,
              public StoreChanges {};

}  // namespace varve
