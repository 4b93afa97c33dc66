#include "client/program/archive_target.h"

#include "client/copies/backup.h"
#include "client/program/place_target.h"
#include "tools/archive/commit_replay.h"
#include "tools/backup/backup_writer.h"
#include "util/base/status.h"

namespace varve {

std::optional<ArchiveTarget::Position> ArchivePlaceTarget::position() const {
  if (!place_.position()) return std::nullopt;
  return Position{.history_id = place_.position()->history_id,
                  .version = place_.position()->version};
}

absl::Status ArchivePlaceTarget::TakeBase(Client* client) {
  BackupWriter writer(place_.bases());
  PlaceTarget target(&writer, /*incremental=*/true);
  const absl::StatusOr<BackupResult> result =
      CopyBackup(client, {}, &target, [this](uint64_t, uint64_t) { return !stopped_(); });
  VARVE_RETURN_IF_ERROR(result.status());
  return place_.BeginChain(writer.description());
}

std::string ArchivePlaceTarget::WhyNotReplayed(const Change& commit) const {
  return varve::WhyNotReplayed(commit);
}

}  // namespace varve
