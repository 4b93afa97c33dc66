// Reader: reads of several keys at once, whose waits for memory and disk overlap (the field's group
// prefetching: Chen, Ailamaki, Gibbons and Mowry, "Improving Hash Join Performance through
// Prefetching").
#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "db/engine/reader.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Keys whose memory is asked for together. A processor keeps some twenty lines on their way and
// drops what it is asked for beyond (docs/performance.md), and a step asks for up to three lines a
// key.
constexpr size_t kKeysARound = 8;
// Keys whose records on disk are asked for before the first of them is waited for.
constexpr size_t kKeysAGroup = 64;

}  // namespace

// All keys as of one moment, in rounds over a few of them, each step of which touches memory that
// the step before has asked for: hash and buckets, entries of buffers, tables, slots of the block
// cache, records. Once something is not in memory, the rest of the group is asked for before it is
// read.
class Reader::MultiRead {
 public:
  MultiRead(const Reader* reader, const ReadOptions& options, const ReadPoint& point,
            absl::Span<const std::string_view> keys)
      : reader_(*reader), options_(options), point_(point), state_(*point.state), keys_(keys) {}

  // Fills in `results`. False: a key has expired by `*instant_ms`, which was not known; all has to
  // be done again with it.
  absl::StatusOr<bool> ReadAll(absl::Span<MultiGetResult> results, uint64_t* instant_ms,
                               SequenceNumber* durable_after, bool* unwritten) {
    size_t bytes = 0;
    for (size_t begin = 0; begin < keys_.size(); begin += kKeysAGroup) {
      const absl::Span<const std::string_view> group = keys_.subspan(begin, kKeysAGroup);
      lookups_.clear();
      bool disk_is_asked = false;
      for (size_t next = 0; next < group.size();) {
        disk_is_asked = AskFor(group.subspan(lookups_.size(), kKeysARound)) || disk_is_asked;
        if (disk_is_asked && lookups_.size() < group.size()) continue;
        lookups_[next].probe.PrefetchRest();
        for (; next < lookups_.size(); ++next) {
          if (next + 1 < lookups_.size()) lookups_[next + 1].probe.PrefetchRest();
          MultiGetResult& result = results[begin + next];
          if (bytes >= options_.max_bytes) {
            for (MultiGetResult& rest : results.subspan(begin + next)) rest.read = false;
            return true;
          }
          result.read = true;
          result.status = Finish(&lookups_[next]);
          if (lookups_[next].record.expiry_ms != 0 && !options_.expired_too &&
              reader_.NeedsInstant(lookups_[next], instant_ms))
            return false;
          reader_.BuildResult(state_, point_.sequence, options_.expired_too ? 0 : *instant_ms,
                              lookups_[next], &result.result,
                              options_.without_value ? nullptr : &result.value, unwritten);
          if (options_.with_metadata) AddMetadata(lookups_[next], &result.result);
          *durable_after = std::max(*durable_after, result.result.durable_after);
          bytes += result.result.value_size;
        }
      }
    }
    return true;
  }

 private:
  // Begins the lookups of a round and asks for their records; true when the disk is asked, too.
  bool AskFor(absl::Span<const std::string_view> keys) {
    const size_t first = lookups_.size();
    for (const std::string_view key : keys) {
      Lookup& lookup = lookups_.emplace_back(point_.generation, key);
      lookup.from_segment.most_bytes = options_.max_value_bytes;
      lookup.from_segment.without_value = options_.without_value;
      ForEachBuffer([&](const WriteBuffer& buffer) { buffer.Prefetch(lookup.hash); });
    }
    const absl::Span<Lookup> round = absl::MakeSpan(lookups_).subspan(first);
    for (const Lookup& lookup : round) {
      ForEachBuffer([&](const WriteBuffer& buffer) { buffer.PrefetchEntry(lookup.hash); });
    }
    for (Lookup& lookup : round) {
      if (!LookUpBuffers(state_, point_.sequence, &lookup)) PrefetchTables(state_, &lookup);
    }
    const std::vector<const Run*>& runs = state_.version->runs();
    for (Lookup& lookup : round) {
      for (; !lookup.found && lookup.first_run < runs.size(); ++lookup.first_run) {
        Segment* const segment = lookup.SegmentOf(lookup.first_run, runs);
        if (segment == nullptr || !lookup.probe.Begin(segment, lookup.hash)) continue;
        lookup.probe.PrefetchSlot();
        break;
      }
    }
    bool disk_is_asked = false;
    for (Lookup& lookup : round) {
      if (!lookup.probe.has_begun()) continue;
      disk_is_asked = lookup.probe.PrefetchRecord(options_.fill_cache) || disk_is_asked;
    }
    return disk_is_asked;
  }

  absl::Status Finish(Lookup* lookup) const {
    if (lookup->found) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(LookUpSegments(state_, point_.sequence, options_.fill_cache, lookup));
    if (lookup->found || state_.namespaces.forks().empty()) [[likely]]
      return absl::OkStatus();
    return LookUpParents(state_, point_.sequence, options_.fill_cache, lookup);
  }

  template <typename Visit>
  void ForEachBuffer(Visit visit) const {
    visit(*state_.active);
    for (const std::shared_ptr<WriteBuffer>& buffer : state_.full) visit(*buffer);
  }

  const Reader& reader_;
  const ReadOptions& options_;
  const ReadPoint& point_;
  const SuperVersion& state_;
  const absl::Span<const std::string_view> keys_;
  static_assert(sizeof(Lookup) * kKeysAGroup <= size_t{48} << 10, "they lie on the caller's stack");
  absl::InlinedVector<Lookup, kKeysAGroup> lookups_;  // of a group
};

absl::Status Reader::MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                              absl::Span<MultiGetResult> results) {
  VARVE_ASSERT(keys.size() == results.size());
  gets_.Add(keys.size());
  const bool log_had_failed = log_.failed();
  SequenceNumber durable_after = kNoSequence;
  bool unwritten = false;
  uint64_t instant_ms = options.snapshot != nullptr ? options.snapshot->instant_ms() : 0;
  for (bool done = false; !done;) {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(versions_, log_, options));
    VARVE_ASSIGN_OR_RETURN(done, MultiRead(this, options, point, keys)
                                     .ReadAll(results, &instant_ms, &durable_after, &unwritten));
  }
  if (instant_ms != 0) {
    for (MultiGetResult& each : results) {
      if (!each.read || !each.status.ok() || !each.result.expired) continue;
      each.result.durable_after = std::max(
          each.result.durable_after, parts_.watermark->RecordExpirySeen(each.result.expiry_ms));
      durable_after = std::max(durable_after, each.result.durable_after);
    }
  }
  absl::Status waited = Await(options, durable_after, unwritten);
  if (!waited.ok() && WorthReadingAgain(options, log_had_failed))
    return MultiGet(options, keys, results);
  return waited;
}

}  // namespace varve
