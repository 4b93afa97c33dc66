// The embedded engine behind StorageEngine. Its parts, one file each: engine_border.cc (where
// exceptions end), engine_open.cc (open, recovery, close), engine_write.cc (commit),
// engine_conditions.cc (what keeps a batch from it), engine_read.cc (lookups, iterators),
// engine_namespaces.cc (what there are, their quotas), engine_count.cc and engine_settle.cc (the
// number of keys), engine_expiry.cc (what has expired), engine_values.cc (values written once),
// engine_background.cc (flush, compaction), engine_install.cc (what they made).
//
// Locks, in the order in which they may be taken together:
//   1. install_mutex_   a new Version: manifest on disk, then published. Held across I/O; readers
//      and writers never take it.
//   2. quota_mutex_     writes into namespaces with a quota, one at a time. Held across I/O; only
//      they take it.
//   3. sweep_mutex_     removing what has expired, one at a time. Held across I/O.
//   4. count_mutex_     counting all keys, one at a time. Held across I/O; only those who ask take
//      it.
//   5. commit_mutex_    the short critical section of a write, and each replacement of the
//      SuperVersion. Not held across I/O, but
//                       for Log::Reserve where others keep taking the room that was prepared
//                       (docs/decisions/0017).
//   6. the log's own    (db/log/log.h)
//   Apart from these, never together with another: async_mutex_, the snapshot list's.
// Readers take none of them: they pin the SuperVersion (structure/published.h).
//
// A lack of memory is a status (util/base/memory_guard.h), also behind the users' backs, where it
// is tried again. Private functions may throw std::bad_alloc and then leave everything as it was.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/compaction/compaction.h"
#include "db/compaction/compaction_planner.h"
#include "db/compaction/value_placer.h"
#include "db/counting/key_ledger.h"
#include "db/engine/commit.h"
#include "db/engine/engine_parts.h"
#include "db/engine/range_check.h"
#include "db/engine/throttle.h"
#include "db/expiry/store_clock.h"
#include "db/format/expiry_index.h"
#include "db/iterators/store_iterator.h"
#include "db/log/log.h"
#include "db/log/log_recovery.h"
#include "db/segment/segment_caches.h"
#include "db/version/manifest.h"
#include "db/version/snapshot_list.h"
#include "db/version/super_version.h"
#include "structure/chunk_pool.h"
#include "structure/published.h"
#include "util/os/file_remover.h"
#include "util/os/file_system.h"
#include "util/os/file_thread.h"
#include "util/os/steady_condition.h"
#include "varve/storage_engine.h"

namespace varve {

class Engine final : public StorageEngine, private EngineParts {
 public:
  static absl::StatusOr<std::unique_ptr<StorageEngine>> Open(const std::string& directory,
                                                             const EngineOptions& options);
  ~Engine() override;

  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override;
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override;
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override;
  uint64_t NowMillis() const override { return clock_.NowMillis(); }
  uint64_t ChangeCount() const override {
    return visible_.load() - counters_.own_operations.load();
  }

  StoreCapabilities capabilities() const override { return {}; }
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  void SetSync(Durability sync) override { sync_.store(sync, std::memory_order_relaxed); }
  absl::Status Push() override { return log_->Push(); }
  absl::Status PushUnsynced() override { return log_->PushUnsynced(); }
  void WriteAsync(const WriteOptions& options, WriteBatch* batch,
                  std::function<void(absl::StatusOr<CommitResult>)> done) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;

  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override;
  absl::StatusOr<NamespaceList> Namespaces() const override;
  bool HasNamespace(NamespaceId space) const override;
  uint64_t UsualExpiry(NamespaceId space) const override {
    return expires_by_default_.load(std::memory_order_relaxed) ? UsualExpiryInside(space)
                                                               : kNoExpiry;
  }

  SequenceNumber durable_sequence() const override { return log_->durable_sequence(); }
  absl::Status log_status() const override { return log_->status(); }
  uint64_t AddDurabilityListener(std::function<void()> listener) override {
    return log_->AddListener(std::move(listener));
  }
  void RemoveDurabilityListener(uint64_t token) override { log_->RemoveListener(token); }
  void SetExpiryListener(ExpiryListener listener) override;
  absl::Status WaitUntilDurable(SequenceNumber sequence) override {
    return log_->WaitUntilDurable(sequence);
  }
  bool TrySync() override { return log_->TrySync(); }
  absl::Status Sync() override { return log_->Sync(); }

  absl::Status Flush() override;
  absl::Status Compact(std::string_view lower, std::string_view upper, NamespaceId space) override;
  Pressure pressure() const override { return throttle_.pressure(); }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override;
  absl::Status Close() override;

 private:
  struct Lookup;
  class Turn;

  Engine(std::string directory, const EngineOptions& options);

  // --- engine_border.cc: the public functions of these names, where a lack of memory becomes a
  // status.
  absl::StatusOr<ReadResult> GetInside(const ReadOptions& options, std::string_view key,
                                       std::string* value);
  absl::StatusOr<ExplainedRead> ExplainGetInside(const ReadOptions& options, std::string_view key);
  absl::Status MultiGetInside(const ReadOptions& options, absl::Span<const std::string_view> keys,
                              absl::Span<MultiGetResult> results);
  std::unique_ptr<Iterator> NewIteratorInside(const ReadOptions& options, std::string_view lower,
                                              std::string_view upper,
                                              SequenceNumber* durable_after);
  std::shared_ptr<const Snapshot> GetSnapshotInside();
  absl::StatusOr<CountResult> CountInside(const ReadOptions& options, std::string_view lower,
                                          std::string_view upper);
  absl::StatusOr<CommitResult> SubmitInside(const WriteOptions& options, WriteBatch* batch);
  absl::StatusOr<CommitResult> UpdateInside(const WriteOptions& options,
                                            absl::Span<const std::string_view> keys,
                                            absl::FunctionRef<absl::Status(WriteBatch*)> decide);
  absl::Status FlushInside();
  absl::Status CompactInside(std::string_view lower, std::string_view upper, NamespaceId space);
  absl::StatusOr<NamespaceList> NamespacesInside() const;
  uint64_t UsualExpiryInside(NamespaceId space) const;
  std::vector<std::pair<std::string, uint64_t>> StatisticsInside() const;
  absl::Status CloseInside();

  // --- engine_open.cc
  absl::Status Recover();
  absl::Status LoadOrCreateManifest();
  absl::Status OpenSegments();
  absl::Status ReplayLog(LogRecovery* recovery);
  absl::Status ApplyRecovered(std::string_view operations, SequenceNumber first, uint32_t count);
  absl::Status StartLog(const LogRecovery& recovery);
  absl::Status RemoveOrphans();
  void StopThreads();

  // --- engine_write.cc `checked`: as of which change of the namespaces the batch is within their
  // quotas; null: not looked at. `*limited` comes back true where that has to be done first; then
  // nothing else was.
  absl::StatusOr<CommitResult> TrySubmit(const WriteOptions& options, WriteBatch* batch,
                                         const SequenceNumber* checked, bool* limited);
  absl::Status CheckWritable(const Commit& commit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // What a write is told while flushes fail.
  absl::Status RefusalLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Takes the memory for the operations in the active buffer, and makes the next SuperVersion
  // (null: no range or namespace changes).
  std::unique_ptr<StateChange> PrepareLocked(const std::vector<Commit::Operation>& operations)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Puts the operations into the active buffer, and the state in its place. Nothing in it may fail.
  void ApplyLocked(const std::vector<Commit::Operation>& operations, bool gated,
                   std::unique_ptr<StateChange> change) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Before a batch of so many operations is numbered: one that would overcrowd the active buffer's
  // index gets a buffer made for it.
  void FitActiveBufferLocked(size_t operations) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void RotateBufferLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // To change the SuperVersion: a copy of the present one, to be changed and published, with what
  // publishing needs.
  std::shared_ptr<SuperVersion> CopyStateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void PublishLocked(std::shared_ptr<const SuperVersion> next) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Where the log has no room ready for the record: has it made, without the lock meanwhile.
  absl::Status PrepareLogLocked(const Commit& commit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  bool ActiveBufferIsFullLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  absl::Status WaitForRoom(size_t bytes, bool adds_data);
  NamespaceGeneration NewGeneration();  // kNoGeneration: none is left
  void CompleteAsyncWrites();
  // What the log's progress or failure means to the rest.
  void OnLogProgress();
  void NoteLogFailure() ABSL_LOCKS_EXCLUDED(commit_mutex_);
  void NoteLogFailureLocked() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Rotates the active buffer when the log has outgrown what it should hold for it: small synced
  // writes take a page each.
  void BoundLog();

  // --- engine_conditions.cc
  absl::Status CheckConditions(const Commit& commit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Of what the condition counts as a change of the key; kMaxSequence: what is too old to be in a
  // buffer may be one.
  SequenceNumber NewestChange(std::string_view tree_key, uint64_t hash,
                              const Commit::Condition& condition) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // The same for conditions on ranges: all that is new but for the last few writes, before the lock
  // is taken for good.
  absl::Status LookAhead(RangeCheck* ranges) const ABSL_LOCKS_EXCLUDED(commit_mutex_);
  absl::Status CheckRanges(const Commit& commit, RangeCheck* ranges) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void WaitForTurn(const ExclusiveWrite* own) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);

  // --- engine_read.cc
  absl::StatusOr<ReadPoint> BeginRead(const ReadOptions& options) const;
  // The namespaces as they were at `at`, since the store was opened.
  NamespaceTable NamespacesAtLocked(SequenceNumber at) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  SequenceNumber GateOf(SequenceNumber sequence) const;
  // Before a result leaves the library. `unwritten`: it may show something of a mode without sync
  // that isn't with the kernel yet.
  absl::Status AwaitGate(const ReadOptions& options, SequenceNumber durable_after, bool unwritten);
  // Whether a read whose gate will never open can be answered as of what is durable.
  bool WorthReadingAgain(const ReadOptions& options, bool log_had_failed) const;
  // So that they come while the buffers are searched.
  void AskForTables(const SuperVersion& state, Lookup* lookup) const;
  bool LookUpBuffers(const SuperVersion& state, SequenceNumber at, Lookup* lookup) const;
  absl::Status LookUpSegments(const SuperVersion& state, SequenceNumber at, bool fill_cache,
                              Lookup* lookup) const;
  // What LookUpBuffers and LookUpSegments did not find, in what its generation stands on, if it
  // does.
  absl::Status LookUpBases(const SuperVersion& state, SequenceNumber at, bool fill_cache,
                           Lookup* lookup) const;
  // Looks everywhere: whether there is a value that nothing deletes, though it may have expired.
  absl::StatusOr<bool> FindLive(const SuperVersion& state, SequenceNumber at, Lookup* lookup) const;
  // Turns what was found into the answer: a newer range tombstone or an expiry up to `instant_ms`
  // hides it; the gate is the newest of all.
  void Conclude(const SuperVersion& state, SequenceNumber at, uint64_t instant_ms,
                const Lookup& lookup, ReadResult* result, std::string* value,
                bool* unwritten) const;
  class MultiRead;  // db/engine/engine_multi_get.cc
  // Bounds are tree keys: [lower, upper), an empty `upper` meaning no end. `clock`: without one,
  // what has expired is shown.
  std::unique_ptr<Iterator> MakeIterator(std::shared_ptr<const SuperVersion> state,
                                         SequenceNumber at, bool fill_cache, std::string lower,
                                         std::string upper, bool with_values,
                                         IteratorClock clock = {}) const;
  // Those of [lower, upper), at least, that no range tombstone hides at `at`; and those that the
  // generation stands on.
  std::unique_ptr<InternalIterator> RecordsOf(const SuperVersion& state, SequenceNumber at,
                                              bool fill_cache, std::string_view lower,
                                              std::string_view upper) const;

  // --- engine_expiry.cc: hiding and removing what has expired. Whether the record, found by a
  // reader at `*instant_ms` (0: it has not looked at the clock), has to be looked up again after a
  // look at the clock, which it has taken then: only what was still there when the clock was read
  // is known to have expired.
  bool NeedsInstant(const Lookup& lookup, uint64_t* instant_ms) const;
  // The gate of whoever has found that something expired at `expiry_ms`: leaves a clock mark,
  // unless there is one.
  SequenceNumber WitnessExpiry(uint64_t expiry_ms);
  ExpiryWitness WitnessFor(const ReadOptions& options);
  void NoteExpiringLocked(const Commit::Operation& operation, StateChange* change) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void ApplyExpiringLocked(const StateChange& change) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void ExpiryLoop();
  // The earliest instant at which an entry of the index may be due; kNeverDue: none is.
  uint64_t NextDueLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Removes all that has expired by now, of all namespaces.
  absl::Status SweepAll();
  // Removes some of what has expired by `now_ms`: what is due, and with `early` also what isn't.
  // False: there is no more.
  absl::StatusOr<bool> Sweep(uint64_t now_ms, bool early)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  absl::Status SweepWidth(Sweeping* sweep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  absl::Status SweepEntries(Sweeping* sweep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  // Removes the entries, and their keys where these have expired; each by itself where a writer
  // came between.
  absl::Status RemoveExpired(absl::Span<const std::string> index_keys, uint64_t now_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);

  // --- engine_namespaces.cc
  absl::StatusOr<CommitResult> SubmitClone(const WriteOptions& options, WriteBatch* batch)
      ABSL_LOCKS_EXCLUDED(sweep_mutex_);
  // Generations that somebody can see, now or in a snapshot that is held, and what they stand on.
  std::function<bool(NamespaceGeneration)> LiveGenerations(const SnapshotList::Held& held,
                                                           NamespaceBases* bases) const;
  std::vector<NamespaceGeneration> GenerationsLeftAfterLocked(SequenceNumber sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  static bool MustCheckQuotas(const SuperVersion& state, const Commit& commit,
                              const SequenceNumber* checked);
  absl::StatusOr<CommitResult> SubmitWithinQuotas(const WriteOptions& options, WriteBatch* batch)
      ABSL_LOCKS_EXCLUDED(quota_mutex_);
  // Whether the batch fits, and what it adds to which generation; `*checked`: as of which change of
  // the namespaces.
  absl::Status CheckQuotas(WriteBatch* batch, SequenceNumber* checked, KeyTallies* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  absl::Status CheckQuota(const Commit& commit, const NamespaceDescription& space,
                          NamespaceGeneration generation, bool is_new, KeyTallies* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  absl::Status CountForQuota(NamespaceGeneration generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  // What the batch would change in the generation now, exactly, as its users see it: they do not
  // see what has expired.
  absl::StatusOr<KeyTally> ChangeOf(const Commit& commit, NamespaceGeneration generation) const;

  // --- engine_count.cc
  // Of everything in a generation in use at the point: what is known, and what is settled now.
  absl::StatusOr<KeyTally> CountAll(CountPoint point, NamespaceGeneration generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  absl::StatusOr<KeyTally> CountByScan(const std::shared_ptr<const SuperVersion>& state,
                                       SequenceNumber at, std::string lower, std::string upper,
                                       IteratorClock clock, SequenceNumber* durable_after) const;
  CountPoint NewCountPoint() const;
  CountPoint NewCountPointLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // What the base held at the cut.
  absl::StatusOr<KeyTally> TallyOfBase(const CountPoint& point, const NamespaceBase& base);
  void NoteTallyOfBase(NamespaceGeneration generation, const KeyTally& tally);
  void CountAtCut();  // what was cloned last, where that costs little
  absl::Status SettleSegments(CountPoint* point);
  absl::StatusOr<KeyTallies> SettleBuffer(const CountPoint& point,
                                          const std::shared_ptr<WriteBuffer>& buffer,
                                          SequenceNumber end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  // Whether what is found out from this point on holds after a crash, too. It leaves out emptied
  // namespaces.
  bool MayNote(const CountPoint& point) const;
  // Notes what was found out, if it still holds.
  void NoteSettled(CountPoint* point, SettledGroup group);
  void NoteSettled(const CountPoint& point, const WriteBuffer& buffer, SequenceNumber end,
                   const KeyTallies& change);
  std::optional<KeyTallies> SettledChangeOf(const WriteBuffer& full) const;
  // Settles segments, oldest first, until all are settled or the background has something else to
  // do.
  void SettleAtRest();
  // Rests for as long as the work before took; false once there is something else to do.
  bool StaysAtRest(SteadyTime* since) ABSL_LOCKS_EXCLUDED(commit_mutex_);

  // --- engine_settle.cc: what a layer changes. `keep_on` is asked now and then; Aborted when it
  // says no.
  absl::StatusOr<KeyTallies> ChangeOf(const SuperVersion& state,
                                      const KeyLedger::UnsettledSegment& unsettled,
                                      absl::FunctionRef<bool()> keep_on) const;
  // In records that are walked in the same time.
  static uint64_t CostOf(const Version& version, const KeyLedger::UnsettledSegment& unsettled);
  // Of the newest so many runs together.
  absl::StatusOr<KeyTallies> ChangeOfNewest(const SuperVersion& state, size_t runs,
                                            absl::FunctionRef<bool()> keep_on) const;
  absl::Status ChangeOf(const Layer& layer, const WriteBuffer& buffer,
                        BufferProgress* progress) const;
  // Walks layer and keys below side by side, in [lower, upper) of one generation.
  absl::Status ChangeBySide(const Layer& layer, InternalIterator* records, std::string lower,
                            std::string upper, absl::FunctionRef<bool()> keep_on,
                            KeyTallies* change) const;
  // The same for what the range tombstones of the layer cover.
  absl::Status ChangeUnderTombstones(const Layer& layer, InternalIterator* records,
                                     absl::FunctionRef<bool()> keep_on, KeyTallies* change) const;
  // Looks up what each record replaced, but for those that range tombstones of the layer cover.
  absl::Status ChangeByLookups(const Layer& layer, InternalIterator* records,
                               std::string_view lower, std::string_view upper,
                               absl::FunctionRef<bool()> keep_on, KeyTallies* change) const;
  absl::StatusOr<KeyTally> LiveAt(const SuperVersion& state, std::string_view tree_key,
                                  SequenceNumber at) const;

  // --- engine_values.cc: where a flush leaves large values, and which files of the log are kept
  // for them (db/values/value_file.h).
  std::unique_ptr<ValuePlacer> NewPlacer(const FullBuffer& full);
  void RetireLog(SequenceNumber flushed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);

  // --- engine_background.cc
  void FlushLoop();
  void CompactionLoop();
  absl::Status FlushOldest();
  absl::Status FlushBuffer(const FullBuffer& full);
  // The next step towards the tree's shape; false: it is in shape, as far as `in_burst` asks for,
  // or only a merge could go on.
  absl::StatusOr<bool> CompactStep(bool may_merge, bool in_burst);
  absl::Status RunPlan(const Version& version, const CompactionPlan& plan,
                       const CompactionContext& context);
  absl::Status CompactRange(std::string_view lower, std::string_view upper);
  CompactionContext NewContext();
  std::shared_ptr<const Version> PresentVersion() const;
  // Makes `levels` the live tree: manifest first, then every reader. `flushed` (may be null): a
  // buffer whose records it holds now. `follow` brings the ledger of the present tree to the new
  // one; `sees_less`: keys that layers above replaced may be gone.
  absl::Status Install(std::vector<Level> levels, const FullBuffer* flushed, bool sees_less,
                       absl::FunctionRef<void(const Version& next, KeyLedger* ledger)> follow)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  bool HasBackgroundWorkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // After Install() failed: removes what it would have installed, unless a restart could find it
  // named.
  void DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Lets readers see what the manifest says.
  void PublishInstalled(const std::shared_ptr<const Version>& version, const Manifest& manifest,
                        const FullBuffer* flushed, bool sees_less,
                        absl::FunctionRef<void(const Version& next, KeyLedger* ledger)> follow)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  void UpdatePressureLocked() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void ReclaimStates();
  uint64_t NewFileNumber() { return next_file_number_.fetch_add(1); }

  const std::string directory_;
  const EngineOptions options_;
  std::atomic<Durability> sync_{options_.sync};
  StoreClock clock_;
  std::atomic<bool> expires_by_default_{false};  // in some namespace
  FileSystem* const file_system_;
  const std::shared_ptr<const CompactionPicker> picker_;
  std::unique_ptr<FileLock> directory_lock_;
  mutable SegmentCaches caches_;  // thread-safe
  FileThread file_thread_;
  mutable FileRemover remover_;  // outlives the segments; has caches forget what it removes
  std::unique_ptr<Log> log_;
  uint64_t durability_listener_ = 0;
  std::atomic<uint64_t> next_file_number_{1};
  std::atomic<NamespaceGeneration> next_generation_{1};
  uint64_t store_id_ = 0;
  absl::Mutex install_mutex_ ABSL_ACQUIRED_BEFORE(commit_mutex_);
  // What is on disk; or was before it, where what is there could not be published.
  Manifest manifest_ ABSL_GUARDED_BY(install_mutex_);

  mutable absl::Mutex commit_mutex_;
  SequenceNumber last_sequence_ ABSL_GUARDED_BY(commit_mutex_) = kNoSequence;
  // What state_ publishes.
  std::shared_ptr<const SuperVersion> present_ ABSL_GUARDED_BY(commit_mutex_);
  std::deque<FullBuffer> flush_queue_ ABSL_GUARDED_BY(commit_mutex_);  // oldest first
  // Its size, for a look without the lock.
  std::atomic<int> full_buffers_{0};
  std::vector<RangeTombstone> buffered_tombstones_ ABSL_GUARDED_BY(commit_mutex_);
  std::vector<LeftGeneration> left_generations_ ABSL_GUARDED_BY(commit_mutex_);  // oldest first
  // Of present_->version.
  KeyLedger ledger_ ABSL_GUARDED_BY(commit_mutex_);
  // What was settled in an earlier epoch doesn't hold any more.
  uint64_t ledger_epoch_ ABSL_GUARDED_BY(commit_mutex_) = 0;
  // What a write buffer changes up to the sequence up to which it was settled.
  std::map<SequenceNumber, KeyTallies> settled_buffers_ ABSL_GUARDED_BY(commit_mutex_);
  KeyTallies base_tallies_ ABSL_GUARDED_BY(commit_mutex_);  // as Manifest::base_tallies
  std::unique_ptr<Cut> last_cut_ ABSL_GUARDED_BY(commit_mutex_);
  bool closed_ ABSL_GUARDED_BY(commit_mutex_) = false;
  std::atomic<SequenceNumber> visible_{kNoSequence};
  SequenceNumber flushed_ ABSL_GUARDED_BY(commit_mutex_) = kNoSequence;
  std::atomic<bool> log_failed_{false};
  SequenceNumber recovered_sequence_ = kNoSequence;  // at the end of Open
  // When the active buffer began.
  uint64_t log_bytes_at_rotation_ ABSL_GUARDED_BY(commit_mutex_) = 0;
  std::atomic<uint64_t> log_bytes_at_flush_{0};  // live ones behind the last flush; see BoundLog()
  // Of a namespace; merges wait until it is durable. kNoSequence: they were told.
  std::atomic<SequenceNumber> last_clear_{kNoSequence};
  Published<SuperVersion> state_;
  mutable SnapshotList snapshots_;
  Throttle throttle_;
  static constexpr size_t kKeyStripes = 64;
  absl::Mutex key_stripes_[kKeyStripes];  // the last resort of Update against starving
  const ExclusiveWrite* turn_ ABSL_GUARDED_BY(commit_mutex_) = nullptr;
  absl::CondVar turn_ended_;
  // The background threads' work, all with commit_mutex_.
  SteadyCondition flush_work_, compaction_work_;
  absl::CondVar room_;  // a buffer was flushed, a request done, or the reason to wait is gone
  bool stopping_ ABSL_GUARDED_BY(commit_mutex_) = false;
  bool reclaim_due_ ABSL_GUARDED_BY(commit_mutex_) = false;
  // Kept while buffers fill up.
  const std::shared_ptr<ChunkPool> buffer_memory_ = std::make_shared<ChunkPool>();
  bool compaction_due_ ABSL_GUARDED_BY(commit_mutex_) = false;
  SteadyTime last_flush_ ABSL_GUARDED_BY(commit_mutex_) = SteadyTime::min();
  // The tree has changed since all of it was settled.
  bool settling_due_ ABSL_GUARDED_BY(commit_mutex_) = true;
  std::deque<CompactRequest*> compact_requests_ ABSL_GUARDED_BY(commit_mutex_);
  absl::Status background_status_ ABSL_GUARDED_BY(commit_mutex_);  // why flushes fail at present
  std::atomic<bool> cancel_compaction_{false};
  std::thread flush_thread_, compaction_thread_;
  absl::Mutex quota_mutex_ ABSL_ACQUIRED_BEFORE(sweep_mutex_, count_mutex_, commit_mutex_);
  // No generation holds more than its entry says; one without an entry was not counted yet.
  KeyTallies quota_bounds_ ABSL_GUARDED_BY(quota_mutex_);
  // The change of namespaces since which.
  SequenceNumber quota_bounds_at_ ABSL_GUARDED_BY(quota_mutex_) = kNoSequence;
  absl::Mutex sweep_mutex_ ABSL_ACQUIRED_BEFORE(count_mutex_);
  ExpiryListener expiry_listener_ ABSL_GUARDED_BY(sweep_mutex_);
  std::atomic<SequenceNumber> clock_mark_sequence_{kNoSequence};
  // By width: no entry of the index that is still to be looked at is due before.
  std::array<uint64_t, kExpiryWidths> due_from_ ABSL_GUARDED_BY(commit_mutex_);
  SteadyCondition expiry_work_;
  std::thread expiry_thread_;
  absl::Mutex count_mutex_ ABSL_ACQUIRED_BEFORE(commit_mutex_);  // held while counting, across I/O
  // Of the buffer that was active then.
  BufferProgress counted_ ABSL_GUARDED_BY(count_mutex_);
  absl::Mutex async_mutex_;
  AsyncWrites async_writes_ ABSL_GUARDED_BY(async_mutex_);
  mutable Counters counters_;
};

}  // namespace varve
