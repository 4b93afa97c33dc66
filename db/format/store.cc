// The asynchronous forms of a store that answers from this process: they do the work inside the
// call.
#include "varve/store.h"

#include <algorithm>

#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "varve/checkpoint.h"
#include "varve/ingest.h"
#include "varve/replication.h"

namespace varve {

std::optional<KeyGrouping> StoreContents::GroupsOf(NamespaceId) const {
  if (capabilities().atomicity == StoreCapabilities::Atomicity::kAnyKeys) return std::nullopt;
  return KeyGrouping();
}

void StoreReads::GetAsync(const ReadOptions& options, std::string key, GetDone done) {
  std::string value;
  absl::StatusOr<ReadResult> result = Get(options, key, &value);
  done(std::move(result), std::move(value));
}

void StoreReads::MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                               MultiGetDone done) {
  std::vector<MultiGetResult> results;
  absl::Status status = GuardMemory("reading keys", [&] {
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    results.resize(keys.size());
    return MultiGet(options, views, absl::MakeSpan(results));
  });
  if (!status.ok()) results.clear();
  done(std::move(status), std::move(results));
}

void StoreReads::CountAsync(const ReadOptions& options, std::string lower, std::string upper,
                            CountDone done) {
  done(Count(options, lower, upper));
}

void StoreReads::ReadRangeAsync(const ReadOptions& options, RangeRequest range, RangeDone done) {
  VARVE_ASSERT(range.max_entries > 0);
  done(GuardMemory("reading a range", [&]() -> absl::StatusOr<RangeSlice> {
    RangeSlice slice;
    const std::unique_ptr<Iterator> iterator =
        NewIterator(options, range.lower, range.upper, &slice.durable_after);
    size_t bytes = 0;
    range.descending ? iterator->SeekToLast() : iterator->SeekToFirst();
    while (iterator->Valid()) {
      slice.more = slice.entries.size() >= range.max_entries ||
                   (!slice.entries.empty() && bytes >= options.max_bytes);
      if (slice.more) break;
      RangeEntry& entry = slice.entries.emplace_back();
      entry.key = iterator->key();
      if (!options.without_value) entry.value = iterator->value();
      entry.value_size = iterator->value_size();
      if (options.with_metadata) entry.metadata = iterator->metadata();
      entry.version = iterator->version();
      entry.expiry_ms = iterator->expiry_ms();
      bytes += entry.key.size() + entry.value.size() + entry.metadata.size();
      range.descending ? iterator->Prev() : iterator->Next();
    }
    if (absl::Status status = iterator->status(); !status.ok()) return status;
    slice.durable_after = std::max(slice.durable_after, iterator->durable_after());
    return slice;
  }));
}

// --- Watches -------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RangeWatch>> StoreWatches::WatchRange(NamespaceId, std::string_view,
                                                                     std::string_view) {
  return absl::FailedPreconditionError("this store can't watch ranges of keys");
}

// --- History -------------------------------------------------------------------------------------

absl::StatusOr<SequenceNumber> StoreHistory::VersionAt(uint64_t) const {
  return absl::FailedPreconditionError("this store keeps no times");
}

absl::StatusOr<uint64_t> StoreHistory::InstantOf(SequenceNumber) const {
  return absl::FailedPreconditionError("this store keeps no times");
}

absl::StatusOr<SequenceNumber> StoreHistory::FirstVersion(NamespaceId) const {
  return absl::FailedPreconditionError("this store keeps no history");
}

absl::StatusOr<PurgeResult> StoreHistory::Purge(NamespaceId, std::string_view,
                                                const std::function<void()>&) {
  return absl::FailedPreconditionError("this store cannot purge keys");
}

absl::StatusOr<std::shared_ptr<const Snapshot>> StoreHistory::SnapshotAt(
    NamespaceId, SequenceNumber, std::optional<uint64_t>) const {
  return absl::FailedPreconditionError("this store keeps no history");
}

absl::StatusOr<KeyHistory> StoreHistory::HistoryOf(NamespaceId, std::string_view, size_t,
                                                   const Snapshot*) const {
  return absl::FailedPreconditionError("this store keeps no history");
}

absl::StatusOr<RemovedKeys> StoreHistory::FindRemoved(const RemovedKeysRequest&) const {
  return absl::FailedPreconditionError("this store keeps no history");
}

absl::StatusOr<std::vector<DroppedNamespace>> StoreHistory::DroppedNamespaces() const {
  return absl::FailedPreconditionError("this store keeps no history");
}

absl::StatusOr<std::unique_ptr<DifferenceIterator>> StoreHistory::NewDifferenceIterator(
    const ComparedState&, const ComparedState&, std::string_view, std::string_view) const {
  return absl::FailedPreconditionError("this store keeps no history");
}

// --- Ingests -------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Ingest>> BeginIngest(Store* store, const IngestOptions& options) {
  auto* const ingesting = dynamic_cast<IngestingStore*>(store);
  if (ingesting == nullptr) return absl::UnimplementedError("this store takes no bulk ingests");
  return ingesting->BeginIngest(options);
}

// --- Checkpoints ---------------------------------------------------------------------------------

absl::StatusOr<Checkpoint> CreateCheckpoint(Store* store, const std::string& directory) {
  auto* const making = dynamic_cast<CheckpointedStore*>(store);
  if (making == nullptr) return absl::UnimplementedError("this store makes no checkpoints");
  return making->CreateCheckpoint(directory);
}

absl::StatusOr<std::string> StoreDirectory(const Store& store) {
  const auto* const making = dynamic_cast<const CheckpointedStore*>(&store);
  if (making == nullptr) return absl::UnimplementedError("this store makes no checkpoints");
  return making->StoreDirectory();
}

// --- Replication ---------------------------------------------------------------------------------

bool IsStoreFile(std::string_view name) {
  return name.starts_with("MANIFEST") || IsSpareName(name) || ParseSegmentName(name) ||
         ParseValueFileName(name) || ParseTimeFileName(name) || ParseChangeFileName(name) ||
         ParseLogFileName(name);
}

ReplicatedStore* ReplicationOf(Store* store) { return dynamic_cast<ReplicatedStore*>(store); }

// --- Changes -------------------------------------------------------------------------------------

namespace {

absl::Status RetainsNoChanges() {
  return absl::FailedPreconditionError("this store retains no changes");
}

}  // namespace

absl::StatusOr<ChangePositions> StoreChanges::GetChangePositions() const {
  return RetainsNoChanges();
}

absl::StatusOr<std::unique_ptr<ChangeIterator>> StoreChanges::NewChangeIterator(
    SequenceNumber, const ChangeFilter&) const {
  return RetainsNoChanges();
}

absl::Status StoreChanges::CreateFeed(const FeedPlace&) { return RetainsNoChanges(); }

absl::Status StoreChanges::AckFeed(std::string_view, SequenceNumber) { return RetainsNoChanges(); }

absl::Status StoreChanges::DropFeed(std::string_view) { return RetainsNoChanges(); }

}  // namespace varve
