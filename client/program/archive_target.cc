#include "client/program/archive_target.h"

#include "client/copies/backup.h"
#include "client/program/place_target.h"
#include "tools/archive/commit_replay.h"
#include "tools/backup/backup_writer.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {

std::optional<ArchiveTarget::Position> ArchivePlaceTarget::position() const {
  if (!place_.position()) return std::nullopt;
  return Position{.history_id = place_.position()->history_id,
                  .version = place_.position()->version};
}

absl::StatusOr<BackupDescription> ArchivePlaceTarget::FetchBase(
    Client* client, const std::function<bool()>& stopped) const {
  const auto stops = [&] { return stopped_() || stopped(); };
  BackupWriter writer(place_.bases());
  PlaceTarget target(&writer, options_.incremental);
  VARVE_RETURN_IF_ERROR(CopyBackup(client, {.bytes_per_second = options_.bytes_per_second}, &target,
                                   [&](uint64_t, uint64_t) { return !stopped_() && !stopped(); })
                            .status());
  VARVE_RETURN_IF_ERROR(place_.SendBase(writer.description(), stops));
  return writer.description();
}

absl::Status ArchivePlaceTarget::TakeBase(Client* client) {
  VARVE_ASSIGN_OR_RETURN(const BackupDescription base, FetchBase(client, [] { return false; }));
  VARVE_RETURN_IF_ERROR(place_.BeginChain(base));
  return Prune();
}

bool ArchivePlaceTarget::IsBaseDue(uint64_t server_ms) const {
  if (options_.base_every_ms == 0 || !place_.position()) return false;
  const BackupDescription& base = place_.base();
  // A base of the same version would be of no use.
  return place_.position()->version > base.version &&
         server_ms >= base.sealed_ms + options_.base_every_ms;
}

absl::Status ArchivePlaceTarget::CopyBase(Client* client, const std::function<bool()>& stopped) {
  VARVE_ASSIGN_OR_RETURN(copied_, FetchBase(client, stopped));
  return absl::OkStatus();
}

std::optional<ArchiveTarget::Position> ArchivePlaceTarget::copied_base() const {
  if (!copied_) return std::nullopt;
  return Position{.history_id = copied_->history_id, .version = copied_->version};
}

absl::Status ArchivePlaceTarget::JoinBase() {
  VARVE_ASSERT(copied_.has_value());
  VARVE_RETURN_IF_ERROR(place_.JoinBase(*copied_));
  copied_.reset();
  return Prune();
}

absl::Status ArchivePlaceTarget::Prune() {
  if (options_.keep_ms == 0 || !place_.position()) return absl::OkStatus();
  return place_.Prune(options_.keep_ms).status();
}

std::string ArchivePlaceTarget::WhyNotReplayed(const Change& commit) const {
  return varve::WhyNotReplayed(commit);
}

}  // namespace varve
