// Engine: reads of several keys at once, whose waits for memory and disk overlap (the field's group prefetching: Chen, Ailamaki, Gibbons
// and Mowry, "Improving Hash Join Performance through Prefetching").
#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "db/engine.h"
#include "db/lookup.h"
#include "util/status.h"

namespace varve {
namespace {

// Keys whose memory is asked for together. A processor keeps some twenty lines on their way and drops what it is asked for beyond
// (docs/performance.md), and a step asks for up to three lines a key.
constexpr size_t kKeysARound = 8;
// Keys whose records on disk are asked for before the first of them is waited for.
constexpr size_t kKeysAGroup = 64;

}  // namespace

absl::Status Engine::MultiGetInside(const ReadOptions& options, absl::Span<const std::string_view> keys,
                                    absl::Span<MultiGetResult> results) {
  counters_.gets.Add(keys.size());
  const bool log_had_failed = log_failed_.load(std::memory_order_relaxed);
  SequenceNumber gate = kNoSequence;
  bool unwritten = false;
  uint64_t instant_ms = options.snapshot != nullptr ? options.snapshot->instant_ms() : 0;
  for (bool done = false; !done;) {
    VARVE_ASSIGN_OR_RETURN(done, MultiGetAt(options, keys, results, &instant_ms, &gate, &unwritten));
  }
  if (instant_ms != 0) {
    for (MultiGetResult& each : results) {
      if (!each.read || !each.status.ok() || !each.result.expired) continue;
      each.result.gate = std::max(each.result.gate, WitnessExpiry(each.result.expiry_ms));
      gate = std::max(gate, each.result.gate);
    }
  }
  absl::Status waited = AwaitGate(options, gate, unwritten);
  if (!waited.ok() && WorthReadingAgain(options, log_had_failed)) return MultiGet(options, keys, results);
  return waited;
}

// In rounds over a few keys, each step of which touches memory that the step before has asked for: hash and buckets, entries of buffers,
// tables, slots of the block cache, records. Once something is not in memory, the rest of the group is asked for before it is read.
absl::StatusOr<bool> Engine::MultiGetAt(const ReadOptions& options, absl::Span<const std::string_view> keys,
                                        absl::Span<MultiGetResult> results, uint64_t* instant_ms, SequenceNumber* gate,
                                        bool* unwritten) {
  VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(options));
  const ReadState& state = *point.state;
  const std::vector<const Run*>& runs = state.version->runs();
  absl::InlinedVector<Segment*, 4 * kKeysARound> segments;  // of a round, by key and run
  absl::InlinedVector<Lookup, kKeysARound> lookups;         // of a group
  size_t bytes = 0;
  const auto for_each_buffer = [&state](auto&& visit) {
    visit(*state.active);
    for (const std::shared_ptr<WriteBuffer>& buffer : state.full) visit(*buffer);
  };

  // Asks for the records of the keys from lookups.size() to `end` of the group at `begin`; true when the disk is asked, too.
  const auto ask_for = [&](size_t begin, size_t end) {
    const size_t first = lookups.size();
    for (const std::string_view key : keys.subspan(begin + first, end - first)) {
      Lookup& lookup = lookups.emplace_back(point.generation, key);
      lookup.from_segment.most_bytes = options.max_value_bytes;
      lookup.from_segment.without_value = options.without_value;
      for_each_buffer([&](const WriteBuffer& buffer) { buffer.Prefetch(lookup.hash); });
    }
    const absl::Span<Lookup> round = absl::MakeSpan(lookups).subspan(first);
    for (const Lookup& lookup : round) {
      for_each_buffer([&](const WriteBuffer& buffer) { buffer.PrefetchEntry(lookup.hash); });
    }
    segments.clear();
    for (Lookup& lookup : round) {
      const bool found = LookUpBuffers(state, point.sequence, &lookup);
      for (const Run* run : runs) {
        segments.push_back(found ? nullptr : run->Find(lookup.key.view()));
        if (segments.back() != nullptr) segments.back()->PrefetchLookup(lookup.hash);
      }
    }
    for (size_t i = 0; i < round.size(); ++i) {
      Lookup& lookup = round[i];
      for (; lookup.first_run < runs.size() && lookup.peeked_in == nullptr; ++lookup.first_run) {
        Segment* const segment = segments[i * runs.size() + lookup.first_run];
        if (segment == nullptr || !segment->Peek(lookup.hash, &lookup.peeked)) continue;
        lookup.peeked_in = segment;
        break;
      }
    }
    bool disk_is_asked = false;
    for (const Lookup& lookup : round) {
      if (lookup.peeked_in == nullptr) continue;
      disk_is_asked = lookup.peeked_in->PrefetchRecord(lookup.peeked, options.fill_cache) || disk_is_asked;
    }
    return disk_is_asked;
  };

  for (size_t begin = 0; begin < keys.size(); begin += kKeysAGroup) {
    const size_t size = std::min(kKeysAGroup, keys.size() - begin);
    lookups.clear();
    lookups.reserve(size);
    bool disk_is_asked = false;
    for (size_t next = 0; next < size;) {
      disk_is_asked = ask_for(begin, std::min(lookups.size() + kKeysARound, size)) || disk_is_asked;
      if (disk_is_asked && lookups.size() < size) continue;
      for (; next < lookups.size(); ++next) {
        Lookup& lookup = lookups[next];
        MultiGetResult& result = results[begin + next];
        result.read = bytes < options.max_bytes;
        if (!result.read) continue;
        result.status =
            lookup.found ? absl::OkStatus() : LookUpSegments(state, point.sequence, options.fill_cache, &lookup);
        if (!lookup.found && !state.namespaces.bases().empty() && result.status.ok()) [[unlikely]] {
          result.status = LookUpBases(state, point.sequence, options.fill_cache, &lookup);
        }
        if (lookup.record.expiry_ms != 0 && NeedsInstant(lookup, instant_ms)) return false;
        Conclude(state, point.sequence, *instant_ms, lookup, &result.result,
                 options.without_value ? nullptr : &result.value, unwritten);
        *gate = std::max(*gate, result.result.gate);
        bytes += result.result.value_size;
      }
    }
  }
  return true;
}

}  // namespace varve
