// The asynchronous forms of a store that answers from this process: they do the work inside the
// call.
#include "varve/store.h"

#include <algorithm>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {

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
      entry.version = iterator->version();
      entry.expiry_ms = iterator->expiry_ms();
      bytes += entry.key.size() + entry.value.size();
      range.descending ? iterator->Prev() : iterator->Next();
    }
    if (absl::Status status = iterator->status(); !status.ok()) return status;
    slice.durable_after = std::max(slice.durable_after, iterator->durable_after());
    return slice;
  }));
}

// --- History -------------------------------------------------------------------------------------

absl::StatusOr<SequenceNumber> StoreHistory::VersionAt(uint64_t) const {
  return absl::FailedPreconditionError("this store keeps no times");
}

absl::StatusOr<uint64_t> StoreHistory::InstantOf(SequenceNumber) const {
  return absl::FailedPreconditionError("this store keeps no times");
}

}  // namespace varve
