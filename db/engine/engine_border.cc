// Engine: the border of the library. Inside it a lack of memory is an exception that leaves
// everything as it was; here it becomes a status (util/base/memory_guard.h). What the log's
// functions need no memory for is called without it (engine.h).
#include <utility>

#include "absl/time/clock.h"
#include "db/engine/engine.h"
#include "db/iterators/store_iterator.h"
#include "util/base/memory_guard.h"

namespace varve {

absl::StatusOr<ReadResult> Engine::Get(const ReadOptions& options, std::string_view key,
                                       std::string* value) {
  return GuardMemory("reading a key", [&] { return GetInside(options, key, value); });
}

absl::StatusOr<ExplainedRead> Engine::ExplainGet(const ReadOptions& options, std::string_view key) {
  return GuardMemory("explaining a read", [&] { return ExplainGetInside(options, key); });
}

absl::Status Engine::MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                              absl::Span<MultiGetResult> results) {
  return GuardMemory("reading keys", [&] { return MultiGetInside(options, keys, results); });
}

// There is always an iterator: one that only tells what is wrong takes some 50 bytes, which are
// waited for.
std::unique_ptr<Iterator> Engine::NewIterator(const ReadOptions& options, std::string_view lower,
                                              std::string_view upper,
                                              SequenceNumber* durable_after) {
  std::unique_ptr<Iterator> iterator;
  absl::Status made = GuardMemory("making an iterator", [&] {
    iterator = NewIteratorInside(options, lower, upper, durable_after);
    return absl::OkStatus();
  });
  while (iterator == nullptr && !TryWithMemory([&] { iterator = NewErrorIterator(made); })) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return iterator;
}

std::shared_ptr<const Snapshot> Engine::GetSnapshot() {
  std::shared_ptr<const Snapshot> snapshot;
  return TryWithMemory([&] { snapshot = GetSnapshotInside(); }) ? snapshot
                                                                : SnapshotList::NotTaken();
}

absl::StatusOr<CountResult> Engine::Count(const ReadOptions& options, std::string_view lower,
                                          std::string_view upper) {
  return GuardMemory("counting keys", [&] { return CountInside(options, lower, upper); });
}

absl::StatusOr<CommitResult> Engine::Submit(const WriteOptions& options, WriteBatch* batch) {
  return GuardMemory("committing a batch", [&] { return SubmitInside(options, batch); });
}

absl::StatusOr<CommitResult> Engine::Update(const WriteOptions& options,
                                            absl::Span<const std::string_view> keys,
                                            absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  return GuardMemory("updating keys", [&] { return UpdateInside(options, keys, decide); });
}

absl::Status Engine::Flush() {
  return GuardMemory("asking for a flush", [this] { return FlushInside(); });
}

absl::Status Engine::Compact(std::string_view lower, std::string_view upper, NamespaceId space) {
  return GuardMemory("asking for a merge", [&] { return CompactInside(lower, upper, space); });
}

absl::StatusOr<NamespaceList> Engine::Namespaces() const {
  return GuardMemory("listing namespaces", [this] { return NamespacesInside(); });
}

std::vector<std::pair<std::string, uint64_t>> Engine::Statistics() const {
  std::vector<std::pair<std::string, uint64_t>> statistics;
  TryWithMemory([&] { statistics = StatisticsInside(); });
  return statistics;
}

absl::Status Engine::Close() {
  return GuardMemory("closing the store", [this] { return CloseInside(); });
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
