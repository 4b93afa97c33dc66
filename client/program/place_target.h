// The target of a backup that hands what comes over the wire to the writer of the files.
//
// Thread-safety: One thread at a time uses a target.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/copies/backup_target.h"
#include "tools/backup/backup_writer.h"

namespace varve {

class PlaceTarget final : public BackupTarget {
 public:
  // Requires: the writer outlives the target.
  PlaceTarget(BackupWriter* writer, bool incremental)
      : writer_(*writer), incremental_(incremental) {}

  absl::Status Begin(const BackupSource& source) override {
    return writer_.Begin({.store_id = source.store_id,
                          .history_id = source.history_id,
                          .version = source.version,
                          .instant_ms = source.instant_ms,
                          .sealed_ms = source.sealed_ms},
                         incremental_);
  }
  absl::StatusOr<bool> Share(const std::string& name, uint64_t size) override {
    return writer_.Share(name, size);
  }
  absl::Status BeginFile(const std::string& name, uint64_t size) override {
    return writer_.BeginFile(name, size);
  }
  absl::Status Append(std::string_view bytes) override { return writer_.Append(bytes); }
  absl::Status EndFile() override { return writer_.EndFile(); }
  absl::StatusOr<std::string> Seal() override { return writer_.Seal(); }

 private:
  BackupWriter& writer_;
  const bool incremental_;
};

}  // namespace varve
