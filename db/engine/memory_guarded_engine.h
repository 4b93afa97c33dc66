// The memory-guarded engine is the StorageEngine that users of the library hold. It hands each call
// on to the engine, and turns the exception for a lack of memory or of threads into a status
// (util/base/memory_guard.h). Submit() alone is guarded by the engine itself, whose own threads
// submit batches, too.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/engine/engine.h"
#include "varve/checkpoint.h"
#include "varve/ingest.h"
#include "varve/replication.h"
#include "varve/storage_engine.h"
#include "varve/store_survey.h"

namespace varve {

// The surveys of a guarded engine.
class GuardedSurveys : public SurveyedStore {
 public:
  // Requires: the engine outlives all calls.
  explicit GuardedSurveys(Engine* engine) : engine_(engine) {}

  TreeSurvey SurveyTree(size_t most_segments) const override;
  KeyMap MapKeys(size_t most_groups) override;
  StorePositions Positions() const override { return engine_->Positions(); }

 private:
  Engine* const engine_;
};

// The history, the changes, the watches and the groups of keys of a guarded engine.
class GuardedHistory : public StorageEngine {
 public:
  // Requires: the engine outlives all calls.
  explicit GuardedHistory(Engine* engine) : engine_(engine) {}

  absl::StatusOr<SequenceNumber> VersionAt(uint64_t instant_ms) const override {
    return engine_->history().VersionAt(instant_ms);
  }
  absl::StatusOr<uint64_t> InstantOf(SequenceNumber version) const override {
    return engine_->history().InstantOf(version);
  }
  absl::StatusOr<SequenceNumber> FirstVersion(NamespaceId space) const override {
    return engine_->history().FirstVersion(space);
  }
  absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotAt(
      NamespaceId space, SequenceNumber version, std::optional<uint64_t> instant_ms) const override;
  absl::StatusOr<KeyHistory> HistoryOf(NamespaceId space, std::string_view key, size_t most,
                                       const Snapshot* snapshot) const override;
  absl::StatusOr<RemovedKeys> FindRemoved(const RemovedKeysRequest& request) const override;

  absl::StatusOr<ChangePositions> GetChangePositions() const override {
    return engine_->changes().GetChangePositions();
  }
  absl::StatusOr<std::unique_ptr<ChangeIterator>> NewChangeIterator(
      SequenceNumber since, const ChangeFilter& filter) const override;
  uint64_t AddChangeListener(std::function<void()> listener) override {
    return engine_->changes().AddListener(std::move(listener));
  }
  void RemoveChangeListener(uint64_t token) override { engine_->changes().RemoveListener(token); }
  absl::Status CreateFeed(const FeedPlace& place) override;
  absl::Status AckFeed(std::string_view name, SequenceNumber version) override;
  absl::Status DropFeed(std::string_view name) override;
  std::vector<FeedPlace> Feeds() const override;
  absl::StatusOr<std::vector<DroppedNamespace>> DroppedNamespaces() const override;
  absl::StatusOr<std::unique_ptr<DifferenceIterator>> NewDifferenceIterator(
      const ComparedState& a, const ComparedState& b, std::string_view lower,
      std::string_view upper) const override;
  absl::StatusOr<PurgeResult> Purge(NamespaceId space, std::string_view key,
                                    const std::function<void()>& deleted) override;
  absl::StatusOr<std::unique_ptr<RangeWatch>> WatchRange(NamespaceId space, std::string_view lower,
                                                         std::string_view upper) override;
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const override {
    return engine_->reader().GroupsOf(space);
  }

 private:
  Engine* const engine_;
};

// The bulk ingests of a guarded engine.
class GuardedIngests : public IngestingStore {
 public:
  // Requires: the engine outlives all calls.
  explicit GuardedIngests(Engine* engine) : engine_(engine) {}

  absl::StatusOr<std::unique_ptr<Ingest>> BeginIngest(const IngestOptions& options) override;

 private:
  Engine* const engine_;
};

// The checkpoints of a guarded engine.
class GuardedCheckpoints : public CheckpointedStore {
 public:
  // Requires: the engine outlives all calls.
  explicit GuardedCheckpoints(Engine* engine) : engine_(engine) {}

  absl::StatusOr<Checkpoint> CreateCheckpoint(const std::string& directory) override;
  std::string StoreDirectory() const override { return engine_->checkpointer().StoreDirectory(); }

 private:
  Engine* const engine_;
};

// The replication of a guarded engine.
class GuardedReplication : public ReplicatedStore {
 public:
  // Requires: the engine outlives all calls.
  explicit GuardedReplication(Engine* engine) : engine_(engine) {}

  StoreIdentity Identity() const override { return engine_->replicator().Identity(); }
  absl::Status RetainForFollowers(uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<ReplicaFeed>> NewReplicaFeed(SequenceNumber since) override;
  void BoundDurable(SequenceNumber version) override {
    engine_->replicator().BoundDurable(version);
  }
  void SetFollowing(bool follows) override { engine_->replicator().SetFollowing(follows); }
  absl::Status ApplyReplicated(std::string_view blocks) override;
  absl::Status SetHistoryId(uint64_t history_id) override;

 private:
  Engine* const engine_;
};

class MemoryGuardedEngine final : public GuardedHistory,
                                  public GuardedSurveys,
                                  public GuardedIngests,
                                  public GuardedCheckpoints,
                                  public GuardedReplication {
 public:
  explicit MemoryGuardedEngine(std::unique_ptr<Engine> engine)
      : GuardedHistory(engine.get()),
        GuardedSurveys(engine.get()),
        GuardedIngests(engine.get()),
        GuardedCheckpoints(engine.get()),
        GuardedReplication(engine.get()),
        engine_(std::move(engine)) {}

  StoreCapabilities capabilities() const override { return {.history = true}; }

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
  uint64_t NowMillis() const override { return engine_->clock().NowMillis(); }

  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override {
    return engine_->Submit(options, batch);  // which never throws
  }
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override {
    engine_->WriteAsync(options, batch, std::move(done));
  }
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override {
    return engine_->pipeline().exclusive_writes().Begin();
  }

  absl::StatusOr<NamespaceList> Namespaces() const override;
  bool HasNamespace(NamespaceId space) const override {
    return engine_->reader().HasNamespace(space);
  }
  uint64_t UsualExpiry(NamespaceId space) const override {
    return engine_->reader().UsualExpiry(space);
  }

  SequenceNumber durable_sequence() const override { return engine_->log().durable_sequence(); }
  absl::Status log_status() const override { return engine_->log()->status(); }
  void SetSync(Durability sync) override { engine_->pipeline().SetSync(sync); }
  absl::Status Push() override { return Noted(engine_->log()->Push()); }
  absl::Status PushUnsynced() override { return Noted(engine_->log()->PushUnsynced()); }
  absl::Status WaitUntilDurable(SequenceNumber sequence) override {
    return engine_->log()->WaitUntilDurable(sequence);
  }
  bool TrySync() override { return engine_->log()->TrySync(); }
  absl::Status Sync() override { return engine_->log()->Sync(); }
  uint64_t AddDurabilityListener(std::function<void()> listener) override {
    return engine_->log()->AddListener(std::move(listener));
  }
  void RemoveDurabilityListener(uint64_t token) override { engine_->log()->RemoveListener(token); }

  absl::Status Flush() override;
  absl::Status Compact(std::string_view lower, std::string_view upper, NamespaceId space) override;
  Pressure pressure() const override { return engine_->pipeline().pressure(); }
  uint64_t ChangeCount() const override { return engine_->ChangeCount(); }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override;
  StoreObservation Observe() const override;
  RangeSize EstimateSize(NamespaceId space, std::string_view lower,
                         std::string_view upper) const override;
  void SetDataLimit(uint64_t bytes) override { engine_->data_bound().SetLimit(bytes); }
  DataCheck CheckData(uint64_t more) const override { return engine_->data_bound().Check(more); }
  absl::StatusOr<uint64_t> CountData() override;
  void SetExpiryListener(ExpiryListener listener) override {
    engine_->sweeper().SetListener(std::move(listener));
  }
  void PauseExpiry(std::chrono::milliseconds how_long) override {
    engine_->sweeper().PauseUntil(SteadyNow() + absl::FromChrono(how_long));
  }
  absl::Status Close() override;

 private:
  // Has listeners of the change feed told of what was written without a sync.
  absl::Status Noted(absl::Status pushed) {
    engine_->NoteDeliverable();
    return pushed;
  }

  const std::unique_ptr<Engine> engine_;
};

}  // namespace varve
