#include "db/engine/memory_guarded_engine.h"

#include "absl/time/clock.h"
#include "db/iterators/store_iterator.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

absl::StatusOr<std::unique_ptr<StorageEngine>> StorageEngine::Open(
    const std::string& directory, const EngineOptions& options, const ReplayListener& on_replay) {
#ifdef NDEBUG
  // Debian builds abseil with deadlock detection on, which costs each lock more than the rest of
  // its work.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  return GuardMemory("opening the store", [&]() -> absl::StatusOr<std::unique_ptr<StorageEngine>> {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                           Engine::Open(directory, options, on_replay));
    return std::make_unique<MemoryGuardedEngine>(std::move(engine));
  });
}

absl::StatusOr<ReadResult> MemoryGuardedEngine::Get(const ReadOptions& options,
                                                    std::string_view key, std::string* value) {
  return GuardMemory("reading a key", [&] { return engine_->reader().Get(options, key, value); });
}

absl::StatusOr<ExplainedRead> MemoryGuardedEngine::ExplainGet(const ReadOptions& options,
                                                              std::string_view key) {
  return GuardMemory("explaining a read", [&]() -> absl::StatusOr<ExplainedRead> {
    VARVE_ASSIGN_OR_RETURN(ExplainedRead read, engine_->reader().ExplainGet(options, key));
    VARVE_RETURN_IF_ERROR(engine_->key_history().Judge(options, key, &read));
    return read;
  });
}

absl::Status MemoryGuardedEngine::MultiGet(const ReadOptions& options,
                                           absl::Span<const std::string_view> keys,
                                           absl::Span<MultiGetResult> results) {
  return GuardMemory("reading keys",
                     [&] { return engine_->reader().MultiGet(options, keys, results); });
}

// There is always an iterator: one that only tells what is wrong takes some 50 bytes, which are
// waited for.
std::unique_ptr<Iterator> MemoryGuardedEngine::NewIterator(const ReadOptions& options,
                                                           std::string_view lower,
                                                           std::string_view upper,
                                                           SequenceNumber* durable_after) {
  std::unique_ptr<Iterator> iterator;
  absl::Status made = GuardMemory("making an iterator", [&] {
    iterator = engine_->reader().NewIterator(options, lower, upper, durable_after);
    return absl::OkStatus();
  });
  while (iterator == nullptr && !TryWithMemory([&] { iterator = NewErrorIterator(made); })) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return iterator;
}

std::shared_ptr<const Snapshot> MemoryGuardedEngine::GetSnapshot() {
  std::shared_ptr<const Snapshot> snapshot;
  return TryWithMemory([&] { snapshot = engine_->reader().GetSnapshot(); })
             ? snapshot
             : SnapshotList::NotTaken();
}

absl::StatusOr<CountResult> MemoryGuardedEngine::Count(const ReadOptions& options,
                                                       std::string_view lower,
                                                       std::string_view upper) {
  return GuardMemory("counting keys",
                     [&] { return engine_->reader().Count(options, lower, upper); });
}

absl::StatusOr<CommitResult> MemoryGuardedEngine::Write(const WriteOptions& options,
                                                        WriteBatch* batch) {
  return GuardMemory("committing a batch", [&] { return engine_->Write(options, batch); });
}

absl::StatusOr<CommitResult> MemoryGuardedEngine::Update(
    const WriteOptions& options, absl::Span<const std::string_view> keys,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  return GuardMemory("updating keys", [&] { return engine_->Update(options, keys, decide); });
}

absl::Status MemoryGuardedEngine::Flush() {
  return GuardMemory("asking for a flush", [this] { return engine_->pipeline().FlushAll(); });
}

absl::Status MemoryGuardedEngine::Compact(std::string_view lower, std::string_view upper,
                                          NamespaceId space) {
  return GuardMemory("asking for a merge", [&] { return engine_->Compact(lower, upper, space); });
}

absl::StatusOr<NamespaceList> MemoryGuardedEngine::Namespaces() const {
  return GuardMemory("listing namespaces", [this] {
    return absl::StatusOr<NamespaceList>(engine_->reader().Namespaces());
  });
}

absl::StatusOr<uint64_t> MemoryGuardedEngine::CountData() {
  return GuardMemory("counting the bytes of all keys and values",
                     [&] { return engine_->data_bound().Count(); });
}

std::vector<std::pair<std::string, uint64_t>> MemoryGuardedEngine::Statistics() const {
  std::vector<std::pair<std::string, uint64_t>> statistics;
  TryWithMemory([&] { statistics = engine_->Statistics(); });
  return statistics;
}

StoreObservation MemoryGuardedEngine::Observe() const {
  StoreObservation seen;
  TryWithMemory([&] { seen = engine_->Observe(); });
  return seen;
}

RangeSize MemoryGuardedEngine::EstimateSize(NamespaceId space, std::string_view lower,
                                            std::string_view upper) const {
  RangeSize size;
  TryWithMemory([&] { size = engine_->EstimateSize(space, lower, upper); });
  return size;
}

absl::StatusOr<std::unique_ptr<RangeWatch>> GuardedHistory::WatchRange(NamespaceId space,
                                                                       std::string_view lower,
                                                                       std::string_view upper) {
  return GuardMemory("watching a range",
                     [&] { return engine_->watches().Begin(space, lower, upper); });
}

TreeSurvey GuardedSurveys::SurveyTree(size_t most_segments) const {
  TreeSurvey survey;
  TryWithMemory([&] { survey = engine_->SurveyTree(most_segments); });
  return survey;
}

KeyMap GuardedSurveys::MapKeys(size_t most_groups) {
  KeyMap map;
  TryWithMemory([&] { map = engine_->MapKeys(most_groups); });
  return map;
}

absl::Status MemoryGuardedEngine::Close() {
  return GuardMemory("closing the store", [this] { return engine_->Close(); });
}

absl::Status StorageEngine::Put(std::string_view key, std::string_view value) {
  return GuardMemory("writing a key", [&] {
    WriteBatch batch;
    batch.Put(key, value);
    return Write({}, &batch).status();
  });
}

absl::Status StorageEngine::Delete(std::string_view key) {
  return GuardMemory("deleting a key", [&] {
    WriteBatch batch;
    batch.Delete(key);
    return Write({}, &batch).status();
  });
}

absl::Status StorageEngine::DeleteRange(std::string_view begin, std::string_view end) {
  return GuardMemory("deleting a range", [&] {
    WriteBatch batch;
    batch.DeleteRange(begin, end);
    return Write({}, &batch).status();
  });
}

absl::StatusOr<std::shared_ptr<const Snapshot>> GuardedHistory::SnapshotAt(
    NamespaceId space, SequenceNumber version, std::optional<uint64_t> instant_ms) const {
  return GuardMemory("taking a snapshot of an old version",
                     [&] { return engine_->history().SnapshotAt(space, version, instant_ms); });
}

absl::StatusOr<std::unique_ptr<ChangeIterator>> GuardedHistory::NewChangeIterator(
    SequenceNumber since, const ChangeFilter& filter) const {
  return GuardMemory("making an iterator of changes",
                     [&] { return engine_->changes().NewChangeIterator(since, filter); });
}

absl::Status GuardedHistory::CreateFeed(const FeedPlace& place) {
  return GuardMemory("creating a feed", [&] { return engine_->changes().CreateFeed(place); });
}

absl::Status GuardedHistory::AckFeed(std::string_view name, SequenceNumber version) {
  return GuardMemory("moving a feed", [&] { return engine_->changes().AckFeed(name, version); });
}

absl::Status GuardedHistory::DropFeed(std::string_view name) {
  return GuardMemory("dropping a feed", [&] { return engine_->changes().DropFeed(name); });
}

std::vector<FeedPlace> GuardedHistory::Feeds() const {
  std::vector<FeedPlace> feeds;
  TryWithMemory([&] { feeds = engine_->changes().Feeds(); });
  return feeds;
}

absl::StatusOr<KeyHistory> GuardedHistory::HistoryOf(NamespaceId space, std::string_view key,
                                                     size_t most, const Snapshot* snapshot) const {
  return GuardMemory("reading the history of a key", [&]() -> absl::StatusOr<KeyHistory> {
    VARVE_RETURN_IF_ERROR(engine_->history().CheckTimes());
    return engine_->key_history().HistoryOf(space, key, most, snapshot);
  });
}

absl::StatusOr<RemovedKeys> GuardedHistory::FindRemoved(const RemovedKeysRequest& request) const {
  return GuardMemory("looking for removed keys", [&]() -> absl::StatusOr<RemovedKeys> {
    VARVE_RETURN_IF_ERROR(engine_->history().CheckTimes());
    return engine_->key_history().FindRemoved(request);
  });
}

absl::StatusOr<std::unique_ptr<DifferenceIterator>> GuardedHistory::NewDifferenceIterator(
    const ComparedState& a, const ComparedState& b, std::string_view lower,
    std::string_view upper) const {
  return GuardMemory("comparing two states", [&] {
    return engine_->history().Compare(&engine_->reader(), a, b, lower, upper);
  });
}

absl::StatusOr<std::vector<DroppedNamespace>> GuardedHistory::DroppedNamespaces() const {
  return GuardMemory("listing dropped namespaces",
                     [&]() -> absl::StatusOr<std::vector<DroppedNamespace>> {
                       return engine_->history().DroppedNamespaces();
                     });
}

absl::StatusOr<std::unique_ptr<Ingest>> GuardedIngests::BeginIngest(const IngestOptions& options) {
  return GuardMemory("beginning an ingest", [&] { return engine_->ingester().Begin(options); });
}

absl::StatusOr<Checkpoint> GuardedCheckpoints::CreateCheckpoint(const std::string& directory) {
  return GuardMemory("making a checkpoint",
                     [&] { return engine_->checkpointer().Create(directory); });
}

absl::Status GuardedReplication::RetainForFollowers(uint64_t bytes) {
  return GuardMemory("retaining changes",
                     [&] { return engine_->replicator().RetainForFollowers(bytes); });
}

absl::StatusOr<std::unique_ptr<ReplicaFeed>> GuardedReplication::NewReplicaFeed(
    SequenceNumber since) {
  return GuardMemory("reading changes",
                     [&] { return engine_->replicator().NewReplicaFeed(since); });
}

absl::Status GuardedReplication::ApplyReplicated(std::string_view blocks) {
  return GuardMemory("following a primary",
                     [&] { return engine_->replicator().ApplyReplicated(blocks); });
}

absl::Status GuardedReplication::SetHistoryId(uint64_t history_id) {
  return GuardMemory("writing the manifest",
                     [&] { return engine_->replicator().SetHistoryId(history_id); });
}

absl::StatusOr<PurgeResult> GuardedHistory::Purge(NamespaceId space, std::string_view key,
                                                  const std::function<void()>& deleted) {
  return GuardMemory("purging a key", [&] { return engine_->Purge(space, key, deleted); });
}

}  // namespace varve
