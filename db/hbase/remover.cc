#include "db/hbase/remover.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {

Remover::Remover(HbaseContext* context, SystemRows* rows, ServerRoster* roster,
                 NamespaceWriter* namespaces)
    : context_(context), rows_(rows), roster_(roster), namespaces_(namespaces) {}

void Remover::SetListener(StoreUpkeep::ExpiryListener listener) {
  const absl::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void Remover::Pause(std::chrono::milliseconds how_long) {
  paused_until_nanos_ = context_->options.clock->MonotonicNanos() + NanosOf(how_long);
}

bool Remover::IsDue(uint64_t since_nanos, std::chrono::milliseconds span) const {
  return context_->options.clock->MonotonicNanos() - since_nanos >= NanosOf(span);
}

absl::Status Remover::Step(const std::function<bool()>& is_over) {
  ForgetRemovedPlaces();
  VARVE_RETURN_IF_ERROR(Elect());
  if (!is_elected()) {
    sweep_.reset();
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(roster_->RemoveDead());
  // It ends early enough for this server to be elected again, and for its other work.
  const uint64_t begin = context_->options.clock->MonotonicNanos();
  const auto ends = [&] { return is_over() || IsDue(begin, context_->options.dead_after / 2); };
  absl::Status status = RemoveRetired(ends);
  status.Update(SweepOn(ends));
  return status;
}

absl::Status Remover::Elect() {
  const std::string me = fmt::format("{:08x}", context_->writer);
  VARVE_ASSIGN_OR_RETURN(const std::vector<SystemRow> read, rows_->Read({kRemoverRow}));
  const SystemRow& row = read.front();
  if (row.is_there && row.value != me) {
    if (rival_ != row.identity) {
      rival_ = row.identity;
      rival_since_nanos_ = context_->options.clock->MonotonicNanos();
    }
    is_elected_ = false;
    if (!IsDue(rival_since_nanos_, context_->options.dead_after)) return absl::OkStatus();
  }
  const absl::Status won = rows_->Replace(kRemoverRow, row, me).status();
  is_elected_ = won.ok();
  return absl::IsAborted(won) ? absl::OkStatus() : won;
}

void Remover::ForgetRemovedPlaces() {
  // A writer that shows a newer catalog lets go of this one.
  const std::shared_ptr<const SpaceCatalog> catalog = context_->spaces.catalog();
  std::set<HbaseGeneration> retired;
  for (const KeyPlace& place : catalog->retired()) retired.insert(place.generation);
  std::erase_if(retired_since_nanos_,
                [&](const auto& each) { return !retired.contains(each.first); });
}

absl::Status Remover::RemoveRetired(const std::function<bool()>& ends) {
  const std::shared_ptr<const SpaceCatalog> catalog = context_->spaces.catalog();
  const SequenceNumber version = context_->spaces.version();
  std::vector<KeyPlace> unseen;
  absl::Status status;
  for (const KeyPlace& place : catalog->retired()) {
    if (!retired_since_nanos_.contains(place.generation)) {
      unseen.push_back(place);
      continue;
    }
    status.Update(RemoveRetiredPlace(place, ends));
    if (ends()) return status;
  }
  if (unseen.empty()) return status;
  const absl::StatusOr<bool> have_seen = roster_->HaveAllSeen({.catalog = version});
  status.Update(have_seen.status());
  if (!have_seen.ok() || !*have_seen) return status;
  const uint64_t now = context_->options.clock->MonotonicNanos();
  for (const KeyPlace& place : unseen) retired_since_nanos_.emplace(place.generation, now);
  return status;
}

absl::Status Remover::RemoveRetiredPlace(const KeyPlace& place, const std::function<bool()>& ends) {
  const uint64_t since = retired_since_nanos_.at(place.generation);
  if (!IsDue(since, Settled())) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const bool is_empty, RemovePlace(context_, place, ends));
  if (!is_empty) return absl::OkStatus();
  return namespaces_
      ->ChangeCatalog(
          [&](SpaceCatalog* changed) {
            changed->Forget(place);
            return absl::OkStatus();
          },
          context_->NewDeadline())
      .status();
}

uint64_t Remover::OldestMillis() const {
  const uint64_t now_ms = context_->clock.NowMillis();
  return now_ms - std::min(now_ms, static_cast<uint64_t>(context_->options.kept_when_gone.count()));
}

absl::Status Remover::SweepOn(const std::function<bool()>& ends) {
  VARVE_RETURN_IF_ERROR(LookWhoHasSeen());
  if (context_->options.clock->MonotonicNanos() < paused_until_nanos_.load())
    return absl::OkStatus();
  if (!sweep_.has_value()) {
    if (has_swept_ && !IsDue(swept_at_nanos_, context_->options.sweep)) return absl::OkStatus();
    BeginSweep();
  }
  if (!GoOnSweeping(ends)) return absl::OkStatus();
  absl::Status status = std::move(sweep_->failed);
  sweep_.reset();
  has_swept_ = true;
  swept_at_nanos_ = context_->options.clock->MonotonicNanos();
  status.Update(RaiseFloor());
  return status;
}

void Remover::BeginSweep() {
  // While a write may be under way that began before the floor was raised, nothing goes.
  const bool is_settled = IsDue(raised_at_nanos_, Settled());
  sweep_ = Sweep{.ready = is_settled ? raised_ : kNoSequence,
                 .oldest_ms = OldestMillis(),
                 .space = 0,
                 .rows = HeaderSweep(),
                 .failed = absl::OkStatus()};
}

bool Remover::GoOnSweeping(const std::function<bool()>& ends) {
  if (sweep_->ready == kNoSequence) return true;
  const std::shared_ptr<const SpaceCatalog> catalog = context_->spaces.catalog();
  for (const NamespaceDescription& space : catalog->List().namespaces) {
    if (space.id < sweep_->space) continue;
    absl::StatusOr<PlacedSpace> place = context_->spaces.Find(space.id);
    if (!place.ok()) continue;  // it was dropped meanwhile
    HeaderSweep& rows = sweep_->rows;
    // One that was emptied since the last step begins again.
    if (sweep_->space != space.id || rows.table != place->table || rows.upper != place->behind) {
      sweep_->space = space.id;
      rows = {place->table, place->prefix, place->behind, TestsOfGone(sweep_->oldest_ms)};
    }
    const absl::StatusOr<bool> is_done = SweepSpace(*place, ends);
    sweep_->failed.Update(is_done.status());
    if (is_done.ok() && !*is_done) return false;
    sweep_->space = space.id + 1;
    rows = HeaderSweep();
    if (ends()) return false;
  }
  return true;
}

absl::StatusOr<bool> Remover::SweepSpace(const PlacedSpace& place,
                                         const std::function<bool()>& ends) {
  return SweepHeaders(*context_, &sweep_->rows, [&](const RowSlice& rows) -> absl::StatusOr<bool> {
    sweep_->failed.Update(RemoveDoomed(place, FindDoomed(place, rows)));
    return !ends();
  });
}

Remover::Doomed Remover::FindDoomed(const PlacedSpace& place, const RowSlice& rows) const {
  const uint64_t oldest_ms = sweep_->oldest_ms;
  Doomed doomed;
  for (const auto& [row, bytes] : rows) {
    const std::optional<HbaseCell> cell = DecodeCellHeader(bytes);
    if (!cell) continue;  // those who read it are told
    if (!cell->IsGone(oldest_ms) || VersionClock::MillisOf(cell->version) > oldest_ms) continue;
    if (cell->version > sweep_->ready) continue;
    HbaseRowWrite& write = doomed.writes.emplace_back();
    write.row = row;
    write.is_checked = true;
    write.expects_prefix = true;
    write.expected = bytes.substr(0, kCellIdentitySize);
    write.kind = HbaseRowWrite::Kind::kDelete;
    write.timestamp = cell->version;
    doomed.expired.emplace_back(cell->is_tombstone ? std::string_view() : place.KeyOf(row));
  }
  return doomed;
}

absl::Status Remover::RemoveDoomed(const PlacedSpace& place, Doomed doomed) {
  const std::vector<absl::Status> statuses =
      CommitEachAndWait(*context_, place.table, std::move(doomed.writes));
  absl::Status failed;
  const absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (absl::IsAborted(statuses[i])) continue;  // somebody wrote it again
    failed.Update(statuses[i]);
    if (!statuses[i].ok()) continue;
    ++removed_rows_;
    if (listener_ && !doomed.expired[i].empty())
      listener_(sweep_->space, doomed.expired[i], kNoSequence);
  }
  return failed;
}

// Rows that go have been gone since the oldest instant. What has a higher version nevertheless, as
// its writer's clock was ahead, waits for a later sweep.
absl::Status Remover::RaiseFloor() {
  const SequenceNumber wanted = VersionClock::At(OldestMillis() + 1) - 1;
  VARVE_ASSIGN_OR_RETURN(const std::vector<SystemRow> read, rows_->Read({kFloorRow}));
  uint64_t known = kNoSequence;
  if (read.front().is_there && !ByteReader(read.front().value).ReadVarint64(&known))
    return absl::DataLossError(
        fmt::format("the floor of versions in table {} makes no sense", context_->options.table));
  if (known < wanted) {
    std::string value;
    PutVarint64(&value, wanted);
    const absl::Status raised = rows_->Replace(kFloorRow, read.front(), value).status();
    if (absl::IsAborted(raised)) return absl::OkStatus();  // the next sweep tries again
    VARVE_RETURN_IF_ERROR(raised);
  }
  raising_ = wanted;
  VARVE_RETURN_IF_ERROR(roster_->Beat());
  return LookWhoHasSeen();
}

absl::Status Remover::LookWhoHasSeen() {
  if (raising_ == kNoSequence) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const bool have_seen, roster_->HaveAllSeen({.floor = raising_}));
  if (!have_seen) return absl::OkStatus();
  raised_ = std::exchange(raising_, kNoSequence);
  raised_at_nanos_ = context_->options.clock->MonotonicNanos();
  return absl::OkStatus();
}

}  // namespace varve
