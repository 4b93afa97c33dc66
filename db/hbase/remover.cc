#include "db/hbase/remover.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "db/hbase/range_reads.h"
#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

uint64_t Nanos(std::chrono::milliseconds span) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(span).count());
}

}  // namespace

Remover::Remover(HbaseContext* context, SystemRows* rows, ServerRoster* roster,
                 NamespaceWriter* namespaces)
    : context_(context), rows_(rows), roster_(roster), namespaces_(namespaces) {}

void Remover::SetListener(StoreUpkeep::ExpiryListener listener) {
  const absl::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void Remover::Pause(std::chrono::milliseconds how_long) {
  paused_until_nanos_ = context_->options.clock->MonotonicNanos() + Nanos(how_long);
}

bool Remover::IsDue(uint64_t since_nanos, std::chrono::milliseconds span) const {
  return context_->options.clock->MonotonicNanos() - since_nanos >= Nanos(span);
}

absl::Status Remover::Step(const std::function<bool()>& is_over) {
  VARVE_RETURN_IF_ERROR(Elect());
  if (!is_elected()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(roster_->RemoveDead());
  VARVE_RETURN_IF_ERROR(RemoveRetired(is_over));
  if (has_swept_ && !IsDue(swept_at_nanos_, context_->options.sweep)) return absl::OkStatus();
  if (context_->options.clock->MonotonicNanos() < paused_until_nanos_.load())
    return absl::OkStatus();
  has_swept_ = true;
  swept_at_nanos_ = context_->options.clock->MonotonicNanos();
  return Sweep(is_over);
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

absl::Status Remover::RemoveRetired(const std::function<bool()>& is_over) {
  const std::shared_ptr<const SpaceCatalog> catalog = context_->spaces.catalog();
  const SequenceNumber version = context_->spaces.version();
  for (const KeyPlace& place : catalog->retired()) {
    const uint64_t now = context_->options.clock->MonotonicNanos();
    const auto since = retired_since_nanos_.try_emplace(place.generation, now).first->second;
    if (!IsDue(since, Settled())) continue;
    VARVE_RETURN_IF_ERROR(roster_->WaitForAll({.catalog = version}));
    VARVE_ASSIGN_OR_RETURN(const bool is_empty, RemovePlace(context_, place, is_over));
    if (!is_empty) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(namespaces_
                              ->ChangeCatalog([&](SpaceCatalog* changed) {
                                changed->Forget(place);
                                return absl::OkStatus();
                              })
                              .status());
    retired_since_nanos_.erase(place.generation);
  }
  return absl::OkStatus();
}

absl::Status Remover::Sweep(const std::function<bool()>& is_over) {
  highest_doomed_ = kNoSequence;
  // While a write may be under way that began before the floor was raised, nothing goes.
  ready_ = IsDue(raised_at_nanos_, Settled()) ? raised_ : kNoSequence;
  const std::shared_ptr<const SpaceCatalog> catalog = context_->spaces.catalog();
  for (const NamespaceDescription& space : catalog->List().namespaces) {
    absl::StatusOr<PlacedSpace> place = context_->spaces.Find(space.id);
    if (!place.ok()) continue;  // it was dropped meanwhile
    VARVE_ASSIGN_OR_RETURN(const bool is_done, SweepSpace(space.id, *place, is_over));
    if (!is_done) return absl::OkStatus();
  }
  return RaiseFloor();
}

absl::StatusOr<bool> Remover::SweepSpace(NamespaceId id, const PlacedSpace& place,
                                         const std::function<bool()>& is_over) {
  uint64_t elected_at = context_->options.clock->MonotonicNanos();
  return ScanHeaders(*context_, place, place.prefix, place.behind,
                     [&](const RowSlice& rows) -> absl::StatusOr<bool> {
                       if (is_over()) return false;
                       if (IsDue(elected_at, context_->options.dead_after / 4)) {
                         elected_at = context_->options.clock->MonotonicNanos();
                         VARVE_RETURN_IF_ERROR(Elect());
                         if (!is_elected()) return false;
                       }
                       VARVE_ASSIGN_OR_RETURN(Doomed doomed, FindDoomed(place, rows));
                       VARVE_RETURN_IF_ERROR(RemoveDoomed(id, place, std::move(doomed)));
                       return true;
                     });
}

absl::StatusOr<Remover::Doomed> Remover::FindDoomed(const PlacedSpace& place,
                                                    const RowSlice& rows) {
  const uint64_t now_ms = context_->clock.NowMillis();
  const auto kept_ms = static_cast<uint64_t>(context_->options.kept_when_gone.count());
  const uint64_t oldest_ms = now_ms - std::min(now_ms, kept_ms);
  Doomed doomed;
  for (const auto& [row, bytes] : rows) {
    const std::optional<HbaseCell> cell = DecodeCellHeader(bytes);
    if (!cell) return NotACell(place.table, bytes.size());
    if (!cell->IsGone(oldest_ms) || VersionClock::MillisOf(cell->version) > oldest_ms) continue;
    if (cell->version > raised_) highest_doomed_ = std::max(highest_doomed_, cell->version);
    if (cell->version > ready_) continue;
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

absl::Status Remover::RemoveDoomed(NamespaceId id, const PlacedSpace& place, Doomed doomed) {
  const std::vector<absl::Status> statuses =
      CommitEachAndWait(*context_, place.table, std::move(doomed.writes));
  const absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (absl::IsAborted(statuses[i])) continue;  // somebody wrote it again
    VARVE_RETURN_IF_ERROR(statuses[i]);
    ++removed_rows_;
    if (listener_ && !doomed.expired[i].empty()) listener_(id, doomed.expired[i], kNoSequence);
  }
  return absl::OkStatus();
}

absl::Status Remover::RaiseFloor() {
  if (highest_doomed_ == kNoSequence) return absl::OkStatus();
  std::string value;
  PutVarint64(&value, std::max(highest_doomed_, context_->clock.floor()));
  VARVE_ASSIGN_OR_RETURN(const std::vector<SystemRow> read, rows_->Read({kFloorRow}));
  uint64_t known = kNoSequence;
  if (read.front().is_there && !ByteReader(read.front().value).ReadVarint64(&known))
    return absl::DataLossError(
        fmt::format("the floor of versions in table {} makes no sense", context_->options.table));
  if (known < highest_doomed_) {
    const absl::Status raised = rows_->Replace(kFloorRow, read.front(), value).status();
    if (absl::IsAborted(raised)) return absl::OkStatus();  // the next sweep tries again
    VARVE_RETURN_IF_ERROR(raised);
  }
  VARVE_RETURN_IF_ERROR(roster_->Beat());
  VARVE_RETURN_IF_ERROR(roster_->WaitForAll({.floor = highest_doomed_}));
  raised_ = highest_doomed_;
  raised_at_nanos_ = context_->options.clock->MonotonicNanos();
  return absl::OkStatus();
}

}  // namespace varve
