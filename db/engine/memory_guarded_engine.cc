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
  return GuardMemory("explaining a read",
                     [&] { return engine_->reader().ExplainGet(options, key); });
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

uint64_t MemoryGuardedEngine::EstimateBytes(NamespaceId space, std::string_view lower,
                                            std::string_view upper) const {
  uint64_t bytes = 0;
  TryWithMemory([&] { bytes = engine_->EstimateBytes(space, lower, upper); });
  return bytes;
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

}  // namespace varve
