#include "db/engine/key_history_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "db/compression/value_decoder.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

// Returns what the write did that moved the namespace out of the generation of `retired`.
Kind KindOfMove(const RetiredGeneration& retired, NamespaceGeneration next,
                const std::vector<RetiredGeneration>& all, const NamespaceForks& forks) {
  if (next == kNoGeneration) return Kind::kDrop;
  if (retired.generation == kNoGeneration)
    return forks.Of(next) != nullptr ? Kind::kClone : Kind::kCreate;
  const bool is_swap = std::any_of(all.begin(), all.end(), [&](const RetiredGeneration& other) {
    return other.retired_at == retired.retired_at && other.space != retired.space;
  });
  return is_swap ? Kind::kSwap : Kind::kFlush;
}

// Returns the eras of the namespace that a reader sees who reads as of `first` to `at`, newest
// first.
std::vector<NamespaceEra> ErasOf(NamespaceId space, const SuperVersion& state,
                                 const std::vector<RetiredGeneration>& all, SequenceNumber first,
                                 SequenceNumber at) {
  std::vector<NamespaceEra> eras;
  NamespaceEra era{.generation = state.namespaces.Generation(space).value_or(kNoGeneration)};
  for (auto retired = all.rbegin(); retired != all.rend() && retired->retired_at > first;
       ++retired) {
    if (retired->space != space) continue;
    era.begin = retired->retired_at;
    era.begun_by = KindOfMove(*retired, era.generation, all, state.namespaces.forks());
    if (era.begin <= at && era.begin < era.end) eras.push_back(era);
    era = {.generation = retired->generation, .end = retired->retired_at};
  }
  eras.push_back(era);
  return eras;
}

// Copies what the record has into `*removed`.
absl::Status CopyValue(const SuperVersion& state, std::string_view key, const RecordView& record,
                       RemovedKey* removed) {
  RecordView whole = record;
  std::string bytes;
  ValueHandle handle;
  if ((record.flags & kSeparatedValue) != 0) {
    ValueFile* file = nullptr;
    if (DecodeValueHandle(record.value, &handle))
      file = state.version->FindValueFile(handle.file_number);
    if (file == nullptr)
      return absl::DataLossError("segment record: the place of its value makes no sense");
    VARVE_RETURN_IF_ERROR(file->ReadOperation(handle, key, record.sequence, &bytes, &whole));
  } else {
    VARVE_ASSIGN_OR_RETURN(whole.value, PlainValueOf(record, &bytes));
  }
  removed->key.assign(key);
  removed->value.assign(whole.value);
  removed->metadata.assign(record.metadata);
  removed->expiry_ms = record.expiry_ms;
  removed->version = record.sequence;
  return absl::OkStatus();
}

// Returns whether nobody who can read the past has seen the value, because its time was over before
// the change, as that of a value may be that a swap brings. `until_ms`: readers see the change at
// this instant, which lies before that of the change where the clock was set back since; nothing: a
// newer change has hidden it.
bool WasNeverSeen(const TimeMap& times, SequenceNumber first, std::optional<uint64_t> until_ms,
                  const KeyChange& change) {
  if (change.record == nullptr || change.record->expiry_ms == 0) return false;
  if (until_ms && change.record->expiry_ms > *until_ms) return false;
  const SequenceNumber from = change.is_oldest ? first : change.sequence;
  return change.record->expiry_ms <= times.InstantOf(from).value_or(0);
}

}  // namespace

absl::StatusOr<KeyHistoryReader::Past> KeyHistoryReader::Begin(NamespaceId space,
                                                               std::optional<Point> point) const {
  Past past;
  // The clock first: what has expired by then was still there at the version that is read.
  past.point = point ? *point : Point{.instant_ms = clock_.NowMillis()};
  std::vector<RetiredGeneration> retired;
  {
    absl::MutexLock lock(&versions_.mutex());
    versions_.show_queue().DrainLocked();
    past.state = versions_.PresentLocked();
    retired = versions_.RetiredGenerationsLocked();
    if (!point) past.point.version = log_.failed() ? log_->durable_sequence() : versions_.visible();
    if (!versions_.NamespacesAtLocked(past.point.version).Generation(space))
      return NoSuchNamespace(space);
  }
  const SequenceNumber at = past.point.version;
  const SequenceNumber kept = history_.FirstKept(space);
  past.first = std::min(kept, at);
  past.eras = ErasOf(space, *past.state, retired, past.first, at);
  // Nothing is older than the first write, or the namespace began there or behind it.
  past.is_whole =
      at == kNoSequence || (kept <= at && (kept <= 1 || version_set_.horizons().IsWhole(space) ||
                                           past.eras.back().generation == kNoGeneration));
  return past;
}

// --- HistoryOf -----------------------------------------------------------------------------------

// Makes events of the changes of one key, which are shown newest first. A change that removes the
// key waits until an older one shows that there was something to remove.
class KeyHistoryReader::Events {
 public:
  Events(const KeyHistoryReader& reader, const Past& past, size_t most, KeyHistory* history)
      : times_(reader.version_set_.times()), past_(past), most_(most), history_(*history) {}

  // Returns whether older changes are wanted.
  bool Show(KeyChange change) {
    const auto until_ms = newer_ ? std::nullopt : std::optional(past_.point.instant_ms);
    if (WasNeverSeen(times_, past_.first, until_ms, change)) {
      change.record = nullptr;
      if (change.is_oldest || change.kind == Kind::kSet) change.kind = Kind::kExpired;
    }
    if (change.record == nullptr) {
      if (change.is_oldest) oldest_removal_ = change.kind;
      newer_ = change;
      removal_ = change;
      return true;
    }
    if (!AddWhatFollowed(*change.record, change.sequence)) return false;
    const bool wanted = Add({.kind = change.kind,
                             .version = change.sequence,
                             .instant_ms = InstantOf(change.sequence),
                             .has_value = true,
                             .value_size = ValueSizeOf(*change.record),
                             .expiry_ms = change.record->expiry_ms});
    newer_ = change;
    newer_->record = nullptr;
    removal_.reset();
    return wanted;
  }

  KeyState State() const {
    if (newest_) {
      if (newest_->has_value) return KeyState::kFound;
      return newest_->kind == Kind::kExpired ? KeyState::kExpired : KeyState::kDeleted;
    }
    if (past_.is_whole) return KeyState::kNeverThere;
    if (!oldest_removal_) return KeyState::kBelowHorizon;
    return oldest_removal_ == Kind::kExpired ? KeyState::kExpired : KeyState::kDeleted;
  }

 private:
  uint64_t InstantOf(SequenceNumber version) const { return times_.InstantOf(version).value_or(0); }

  // Adds how the value `record`, which was written as `version`, came to its end, unless a newer
  // value took its place.
  bool AddWhatFollowed(const RecordView& record, SequenceNumber version) {
    const bool was_found_expired = newer_ && newer_->kind == Kind::kExpired && removal_;
    const uint64_t until_ms = newer_ ? InstantOf(newer_->sequence) : past_.point.instant_ms;
    if (record.expiry_ms != 0 && (was_found_expired || record.expiry_ms <= until_ms)) {
      const SequenceNumber newest = newer_ ? newer_->sequence - 1 : past_.point.version;
      const SequenceNumber then = times_.VersionAt(record.expiry_ms, newest).value_or(version);
      return Add(
          {.kind = Kind::kExpired,
           .version = was_found_expired ? newer_->sequence : std::clamp(then, version, newest),
           .instant_ms = record.expiry_ms});
    }
    if (!removal_) return true;
    return Add({.kind = removal_->kind,
                .version = removal_->sequence,
                .instant_ms = InstantOf(removal_->sequence)});
  }

  bool Add(const KeyEvent& event) {
    if (!newest_) newest_ = event;
    history_.more = history_.events.size() == most_;
    if (!history_.more) history_.events.push_back(event);
    return !history_.more;
  }

  const TimeMap& times_;
  const Past& past_;
  const size_t most_;
  KeyHistory& history_;
  std::optional<KeyEvent> newest_;
  std::optional<KeyChange> newer_;    // the change that was shown last
  std::optional<KeyChange> removal_;  // the same, if it removes the key
  std::optional<Kind> oldest_removal_;
};

absl::StatusOr<KeyHistory> KeyHistoryReader::HistoryOf(NamespaceId space, std::string_view key,
                                                       size_t most,
                                                       const Snapshot* snapshot) const {
  std::optional<Point> point;
  if (snapshot != nullptr) point = Point{snapshot->sequence(), snapshot->instant_ms()};
  return HistoryUpTo(point, space, key, most);
}

absl::StatusOr<KeyHistory> KeyHistoryReader::HistoryUpTo(std::optional<Point> point,
                                                         NamespaceId space, std::string_view key,
                                                         size_t most) const {
  VARVE_ASSIGN_OR_RETURN(const Past past, Begin(space, point));
  KeyHistory history;
  history.durable_after = log_.RequiredDurable(past.point.version);
  Events events(*this, past, most, &history);
  const std::string end = std::string(key) + '\0';
  for (const NamespaceEra& era : past.eras) {
    EraCursor cursor(past.state.get(), era,
                     {.first = past.first,
                      .at = past.point.version,
                      .lower = key,
                      .upper = end,
                      .fill_cache = true});
    const bool wanted =
        cursor.ShowChanges(key, [&](const KeyChange& change) { return events.Show(change); });
    VARVE_RETURN_IF_ERROR(cursor.status());
    if (!wanted) break;
  }
  history.state = events.State();
  return history;
}

absl::Status KeyHistoryReader::Judge(const ReadOptions& options, std::string_view key,
                                     ExplainedRead* read) const {
  read->state = KeyState::kFound;
  if (read->result.found) return absl::OkStatus();
  read->state = KeyState::kExpired;
  if (read->result.expired) return absl::OkStatus();
  const uint64_t instant_ms =
      options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis();
  VARVE_ASSIGN_OR_RETURN(
      const KeyHistory history,
      HistoryUpTo(Point{read->result.read_sequence, instant_ms}, options.space, key, /*most=*/1));
  read->state = history.state;
  read->result.durable_after = std::max(read->result.durable_after, history.durable_after);
  return absl::OkStatus();
}

// --- FindRemoved ---------------------------------------------------------------------------------

namespace {

absl::Status TooManyRemoved(const RemovedKeysRequest& request) {
  return absl::OutOfRangeError(
      fmt::format("the range holds more than {} keys or {} bytes that would come back in one step",
                  request.most_keys, request.most_bytes));
}

}  // namespace

absl::StatusOr<RemovedKeys> KeyHistoryReader::FindRemoved(const RemovedKeysRequest& request) const {
  VARVE_ASSIGN_OR_RETURN(const Past past, Begin(request.space, std::nullopt));
  RemovedKeys found;
  found.read_sequence = past.point.version;
  found.durable_after = log_.RequiredDurable(past.point.version);
  std::vector<EraCursor> cursors;
  for (const NamespaceEra& era : past.eras) {
    cursors.emplace_back(past.state.get(), era,
                         EraCursor::Bounds{.first = past.first,
                                           .at = past.point.version,
                                           .lower = request.lower,
                                           .upper = request.upper});
  }
  size_t bytes = 0;
  for (std::string key;;) {
    const EraCursor* next = nullptr;
    for (const EraCursor& cursor : cursors) {
      VARVE_RETURN_IF_ERROR(cursor.status());
      if (cursor.Valid() && (next == nullptr || cursor.key() < next->key())) next = &cursor;
    }
    if (next == nullptr) return found;
    key.assign(next->key());
    bool is_removed = false;
    absl::Status status;
    for (EraCursor& cursor : cursors) {
      const bool wanted = cursor.ShowChanges(key, [&](const KeyChange& change) {
        const auto until_ms = is_removed ? std::nullopt : std::optional(past.point.instant_ms);
        if (change.record == nullptr ||
            WasNeverSeen(version_set_.times(), past.first, until_ms, change)) {
          is_removed = true;
          return true;
        }
        const uint64_t expiry_ms = change.record->expiry_ms;
        const bool is_over = expiry_ms != 0 && expiry_ms <= past.point.instant_ms;
        if (is_over || (!is_removed && !request.also_present)) return false;
        RemovedKey removed;
        status = CopyValue(*past.state, key, *change.record, &removed);
        bytes += removed.key.size() + removed.value.size() + removed.metadata.size();
        if (status.ok() && (found.keys.size() == request.most_keys || bytes > request.most_bytes))
          status = TooManyRemoved(request);
        found.keys.push_back(std::move(removed));
        return false;
      });
      VARVE_RETURN_IF_ERROR(status);
      VARVE_RETURN_IF_ERROR(cursor.status());
      if (!wanted) break;
    }
    for (EraCursor& cursor : cursors) cursor.MoveBehind(key);
  }
}

}  // namespace varve
