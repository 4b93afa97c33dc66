// Writes records that a repair has saved into a new segment, with what the manifest says of it.
//
// Thread-safety: one thread at a time uses a writer.
// Requires: records come in the order of the tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/key_counts.h"
#include "db/format/range_tombstone.h"
#include "db/segment/segment_builder.h"
#include "type/record.h"
#include "util/os/file_system.h"

namespace varve {

class RepairWriter {
 public:
  // `tombstones` are the range tombstones that go with the records. The segment comes into being
  // with its first record or tombstone.
  RepairWriter(FileSystem* file_system, std::string directory, uint64_t number,
               uint64_t average_record_size, std::vector<RangeTombstone> tombstones)
      : file_system_(file_system), tombstones_(std::move(tombstones)) {
    options_.directory = std::move(directory);
    options_.number = number;
    options_.block_size = SegmentBuilder::BlockSizeFor(average_record_size);
  }

  // Requires: `record` comes behind the one before in the order of the tree.
  [[nodiscard]] absl::Status Add(const RecordView& record);
  // Returns nothing if there was nothing to write.
  [[nodiscard]] absl::StatusOr<std::optional<SegmentInfo>> Finish();

 private:
  absl::Status Open();

  FileSystem* const file_system_;
  SegmentBuilder::Options options_;
  const RangeTombstoneList tombstones_;
  std::unique_ptr<SegmentBuilder> builder_;
  std::string key_;  // of the last record
  GenerationKeyCounts live_;
};

}  // namespace varve
