// Writes one segment: records in the order of the tree, then their offset table, fences, range
// tombstones and footer.
//
// Not thread-safe. Memory: a write buffer and 16 bytes a distinct key, in Finish some 25 more. The
// file is complete, synced and its directory entry too when Finish returns; before that it is an
// orphan which the next open removes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/key_tally.h"
#include "db/format/range_tombstone.h"
#include "db/format/segment_info.h"
#include "type/record.h"
#include "util/os/file_system.h"

namespace varve {

struct SegmentCaches;

class SegmentBuilder {
 public:
  struct Options {
    std::string directory;
    uint64_t number = 0;
    // Bytes of data between two fences, and the unit of the block cache; a power of two from 4 KiB
    // to 64 KiB. BlockSizeFor() chooses it so that fences stay small beside their records.
    uint32_t block_size = 4096;
    size_t expected_entries = 0;
    // Where the finished offset table and fences wait for Segment::Open, so that they are not read
    // back. May be null.
    SegmentCaches* caches = nullptr;
  };
  static uint32_t BlockSizeFor(uint64_t average_record_size);

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SegmentBuilder>> Create(
      FileSystem* file_system, const Options& options);
  virtual ~SegmentBuilder() = default;  // without Finish: the file is removed

  // Records must come in the order of the tree. After an error of the disk every call fails, and
  // the file goes with the builder. InvalidArgument: out of order, or not a value or tombstone.
  // ResourceExhausted also: data beyond 128 GiB.
  [[nodiscard]] virtual absl::Status Add(const RecordView& record) = 0;
  [[nodiscard]] virtual absl::Status AddRangeTombstone(const RangeTombstone& tombstone) = 0;
  // Bytes of the file so far.
  virtual uint64_t file_size() const = 0;
  virtual uint64_t entries() const = 0;
  [[nodiscard]] virtual absl::StatusOr<SegmentInfo> Finish() = 0;
};

}  // namespace varve
