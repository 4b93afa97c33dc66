#include "db/transaction/read_set.h"

#include <memory>

#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {

bool ReadSet::AddKey(std::string_view key, NamespaceId space,
                     const std::optional<WriteBatch::ReadPoint>& read) {
  Space& in = spaces_[space];
  if (const auto found = in.keys.find(key); found != in.keys.end())
    return !read || (found->second && found->second->version == read->version);
  if (in.ranges.Find(key)) return true;
  in.keys.emplace(key, read);
  bytes_ += key.size() + kBytesPerKey;
  return true;
}

void ReadSet::AddRange(std::string_view begin, std::string_view end, NamespaceId space) {
  RangeSet& ranges = spaces_[space].ranges;
  VARVE_ASSERT(bytes_ >= ranges.bytes());
  bytes_ -= ranges.bytes();
  ranges.Add(begin, end);
  if (ranges.ranges().size() > kMaxRanges) ranges.JoinNeighbours();
  VARVE_ASSERT(ranges.ranges().size() <= kMaxRanges + 1);
  bytes_ += ranges.bytes();
}

void ReadSet::AddTo(WriteBatch* batch, SequenceNumber sequence) const {
  for (const auto& [id, space] : spaces_) {
    for (const auto& [begin, end] : space.ranges.ranges())
      batch->RequireRangeUnchanged(begin, end, sequence, id);
    for (const auto& [key, read] : space.keys) {
      if (!space.ranges.Find(key))
        batch->RequireUnchanged(key, read.value_or(WriteBatch::ReadPoint(sequence)), id);
    }
  }
}

absl::StatusOr<bool> ReadSet::SameAt(Store* store, const Snapshot& before,
                                     const Snapshot& after) const {
  for (const auto& [id, space] : spaces_) {
    ReadOptions options;
    options.space = id;
    options.wait_until_durable = false;
    options.without_value = true;
    std::string none;
    for (const auto& [key, read] : space.keys) {
      options.snapshot = &before;
      VARVE_ASSIGN_OR_RETURN(const ReadResult then, store->Get(options, key, &none));
      options.snapshot = &after;
      VARVE_ASSIGN_OR_RETURN(const ReadResult now, store->Get(options, key, &none));
      if (then.found != now.found || then.version != now.version) return false;
    }
    for (const auto& [begin, end] : space.ranges.ranges()) {
      VARVE_ASSIGN_OR_RETURN(const bool same, SameRange(store, options, before, after, begin, end));
      if (!same) return false;
    }
  }
  return true;
}

absl::StatusOr<bool> ReadSet::SameRange(Store* store, ReadOptions options, const Snapshot& before,
                                        const Snapshot& after, std::string_view begin,
                                        std::string_view end) {
  options.fill_cache = false;
  options.snapshot = &before;
  const std::unique_ptr<Iterator> then = store->NewIterator(options, begin, end, nullptr);
  options.snapshot = &after;
  const std::unique_ptr<Iterator> now = store->NewIterator(options, begin, end, nullptr);
  then->SeekToFirst();
  now->SeekToFirst();
  for (; then->Valid() && now->Valid(); then->Next(), now->Next()) {
    if (then->version() != now->version() || then->key() != now->key()) return false;
  }
  VARVE_RETURN_IF_ERROR(then->status());
  VARVE_RETURN_IF_ERROR(now->status());
  return then->Valid() == now->Valid();
}

}  // namespace varve
