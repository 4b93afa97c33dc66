#include "db/version/lookup.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {

bool LookUpBuffers(const SuperVersion& state, SequenceNumber at, Lookup* lookup) {
  WriteBuffer::Found found;
  const auto look_in = [&](const WriteBuffer& buffer) {
    if (!buffer.Get(lookup->key.view(), lookup->hash, at, &found)) return false;
    lookup->found = true;
    lookup->record = found.record;
    lookup->readers_wait = found.readers_wait;
    VARVE_ASSERT(found.record.sequence <= at);
    return true;
  };
  if (look_in(*state.active)) return true;
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) {
    if (look_in(*buffer)) return true;
  }
  return false;
}

void PrefetchTables(const SuperVersion& state, Lookup* lookup) {
  const std::vector<const Run*>& runs = state.version->runs();
  const size_t asked_most = std::min(runs.size(), Lookup::kMostAsked);
  for (; lookup->asked < asked_most; ++lookup->asked) {
    Segment* const segment = runs[lookup->asked]->Find(lookup->key.view());
    lookup->segments[lookup->asked] = segment;
    if (segment != nullptr) segment->PrefetchTable(lookup->hash);
  }
}

absl::Status LookUpSegments(const SuperVersion& state, SequenceNumber at, bool fill_cache,
                            Lookup* lookup) {
  const std::vector<const Run*>& runs = state.version->runs();
  for (size_t i = lookup->first_run; i < runs.size() && !lookup->found; ++i) {
    if (!lookup->probe.has_begun()) {
      Segment* const segment = lookup->SegmentOf(i, runs);
      if (segment == nullptr || !lookup->probe.Begin(segment, lookup->hash)) continue;
    }
    VARVE_ASSIGN_OR_RETURN(lookup->found, lookup->probe.Finish(lookup->key.view(), at, fill_cache,
                                                               &lookup->from_segment));
    if (lookup->found) lookup->record = lookup->from_segment.record;
  }
  return absl::OkStatus();
}

absl::Status LookUpParents(const SuperVersion& state, SequenceNumber at, bool fill_cache,
                           Lookup* lookup) {
  VARVE_ASSERT(!lookup->found);
  const NamespaceFork* fork = state.namespaces.forks().Of(GenerationOf(lookup->key.view()));
  if (fork == nullptr) return absl::OkStatus();
  const SuperVersion* of_level = &state;
  at = std::max(at,
                fork->fork_point);  // a reader that sees a clone sees all that it was forked from
  // That there is a clone of the past was written at a sequence that nobody remembers.
  lookup->fork_point = fork->expired_by_ms == 0 ? fork->fork_point : at;
  NamespaceFork seen_through = *fork;  // hides what one of the forks so far hides
  for (; fork != nullptr && !lookup->found; fork = state.namespaces.forks().Of(fork->parent)) {
    if (of_level->CoveringSequence(lookup->key.view(), std::min(at, lookup->up_to)) != kNoSequence)
      break;
    lookup->key = TreeKey(fork->parent, UserKeyOf(lookup->key.view()));
    lookup->hash = HashKey(lookup->key.view());
    lookup->up_to = fork->fork_point;
    lookup->first_run = lookup->asked = 0;
    of_level = &state.for_parents();
    if (!LookUpBuffers(*of_level, fork->fork_point, lookup)) {
      VARVE_RETURN_IF_ERROR(LookUpSegments(*of_level, fork->fork_point, fill_cache, lookup));
    }
    seen_through.expired_by_ms = std::max(seen_through.expired_by_ms, fork->expired_by_ms);
    if (lookup->found && seen_through.Hides(lookup->record)) {
      lookup->record.kind = RecordKind::kTombstone;
      lookup->record.expiry_ms = 0;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FindLive(const SuperVersion& state, SequenceNumber at, Lookup* lookup) {
  lookup->from_segment.without_value = true;
  if (!LookUpBuffers(state, at, lookup)) {
    VARVE_RETURN_IF_ERROR(LookUpSegments(state, at, /*fill_cache=*/false, lookup));
  }
  if (!lookup->found) VARVE_RETURN_IF_ERROR(LookUpParents(state, at, /*fill_cache=*/false, lookup));
  if (!lookup->found || lookup->record.kind != RecordKind::kValue) return false;
  const bool is_own = lookup->up_to == kMaxSequence;
  const SuperVersion& found_in = is_own ? state : state.for_parents();
  return found_in.CoveringSequence(lookup->key.view(), is_own ? at : lookup->up_to) <
         lookup->record.sequence;
}

}  // namespace varve
