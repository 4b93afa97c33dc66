// The segment index is a segment's offset table and fences in memory: the same bytes as on disk,
// verified, and aligned so that a bucket is one cache line.
//
// Thread-safety: an index is immutable and shared by reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "db/segment/segment_fences.h"
#include "db/segment/segment_footer.h"
#include "structure/offset_table.h"
#include "util/os/aligned_bytes.h"
#include "util/os/file_system.h"

namespace varve {

class SegmentIndex : public std::enable_shared_from_this<SegmentIndex> {
 public:
  // Requires: `bytes` are the table's pages, then the fences, as `footer` says, and verified.
  SegmentIndex(SegmentFooter footer, AlignedBytes bytes);
  SegmentIndex(const SegmentIndex&) = delete;
  SegmentIndex& operator=(const SegmentIndex&) = delete;

  // Reads and verifies table and fences with one read. Returns DataLoss, with file and offset, if
  // they are damaged.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const SegmentIndex>> Load(
      const File& file, const SegmentFooter& footer);

  const SegmentFooter& footer() const { return footer_; }
  const OffsetTableView& table() const { return table_; }
  const char* table_bytes() const { return bytes_.data(); }
  const SegmentFences& fences() const { return fences_; }
  // Returns the bytes of memory that it takes.
  size_t charge() const {
    return sizeof(*this) + bytes_.capacity() +
           footer_.overflow.size() * sizeof(OffsetTableOverflow);
  }

 private:
  const SegmentFooter footer_;
  const AlignedBytes bytes_;
  const OffsetTableView table_;
  const SegmentFences fences_;
};

// Loaded fences are the fences without the offset table, for iterators over a segment whose index
// isn't in memory.
class LoadedFences {
 public:
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const LoadedFences>> Load(
      const File& file, const SegmentFooter& footer);
  const SegmentFences& fences() const { return fences_; }

 private:
  AlignedBytes bytes_;
  SegmentFences fences_;
};

}  // namespace varve
