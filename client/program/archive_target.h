// The target of an archiver that hands what comes over the wire to the place of the files.
//
// Thread-safety: One thread at a time uses a target, but for CopyBase().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/copies/archive_target.h"
#include "tools/archive/archive_place.h"

namespace varve {

struct ArchiveTargetOptions {
  uint64_t base_every_ms = 0;     // 0: bases are taken where one is needed
  uint64_t keep_ms = 0;           // 0: nothing is removed
  bool incremental = true;        // bases share files
  uint64_t bytes_per_second = 0;  // of a base; 0: as fast as it goes
};

class ArchivePlaceTarget final : public ArchiveTarget {
 public:
  // Requires: the place outlives the target. `stopped` is asked while a base is taken, which then
  // ends with Cancelled.
  ArchivePlaceTarget(ArchivePlace* place, const ArchiveTargetOptions& options,
                     std::function<bool()> stopped)
      : place_(*place), options_(options), stopped_(std::move(stopped)) {}

  std::string FeedName() const override { return "archive-" + place_.id(); }
  std::optional<Position> position() const override;
  std::string why_base() const override { return place_.why_base(); }
  void NeedBase(std::string_view why) override { place_.NeedBase(why); }
  absl::Status NoteBaseBegins(uint64_t server_s) override {
    return place_.NoteBaseBegins(server_s);
  }
  absl::Status ForgetBaseBegun() override { return place_.ForgetBaseBegun(); }
  std::optional<uint64_t> base_began_s() const override { return place_.base_began_s(); }
  absl::Status TakeBase(Client* client) override;
  bool IsBaseDue(uint64_t server_ms) const override;
  absl::Status CopyBase(Client* client, const std::function<bool()>& stopped) override;
  std::optional<Position> copied_base() const override;
  absl::Status JoinBase() override;
  void ForgetCopiedBase() override { copied_.reset(); }
  std::string WhyNotReplayed(const Change& commit) const override;
  absl::Status Append(absl::Span<const Change> commits) override { return place_.Append(commits); }
  absl::Status NoteCurrent(uint64_t current_ms) override { return place_.NoteCurrent(current_ms); }

  // Removes what is not kept any more.
  [[nodiscard]] absl::Status Prune();

 private:
  // Copies a base, and sends it if files are sent.
  absl::StatusOr<BackupDescription> FetchBase(Client* client,
                                              const std::function<bool()>& stopped) const;

  ArchivePlace& place_;
  const ArchiveTargetOptions options_;
  const std::function<bool()> stopped_;
  std::optional<BackupDescription> copied_;  // and not joined
};

}  // namespace varve
