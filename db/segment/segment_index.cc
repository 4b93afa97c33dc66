#include "db/segment/segment_index.h"

#include <string_view>
#include <utility>

#include "util/base/status.h"

namespace varve {
namespace {

absl::Status ReadFully(const File& file, uint64_t offset, const AlignedBytes& bytes) {
  VARVE_ASSIGN_OR_RETURN(const size_t size, file.Read(offset, bytes.size(), bytes.data()));
  if (size != bytes.size())
    return Corruption(file.path(), offset + size, "segment: the file ends within its index");
  return absl::OkStatus();
}

absl::Status CheckFences(const File& file, const SegmentFooter& footer, std::string_view bytes) {
  if (const auto damage = SegmentFences::FindDamage(bytes, footer.fence_count, footer.data_size,
                                                    footer.block_size, footer.info.number)) {
    return Corruption(file.path(), footer.fences_offset + *damage,
                      "segment fences: wrong checksum, or out of order");
  }
  return absl::OkStatus();
}

}  // namespace

SegmentIndex::SegmentIndex(SegmentFooter footer, AlignedBytes bytes)
    : footer_(std::move(footer)),
      bytes_(std::move(bytes)),
      table_(bytes_.data(), footer_.table_pages, footer_.overflow),
      fences_(bytes_.data() + uint64_t{footer_.table_pages} * kOffsetTablePageSize,
              footer_.fence_count, footer_.data_size, footer_.block_size) {}

absl::StatusOr<std::shared_ptr<const SegmentIndex>> SegmentIndex::Load(
    const File& file, const SegmentFooter& footer) {
  AlignedBytes bytes(footer.index_size());
  VARVE_RETURN_IF_ERROR(ReadFully(file, footer.table_offset, bytes));
  for (uint32_t page = 0; page < footer.table_pages; ++page) {
    const uint64_t at = uint64_t{page} * kOffsetTablePageSize;
    if (!OffsetTablePageIsIntact({bytes.data() + at, kOffsetTablePageSize}, footer.info.number,
                                 page)) {
      return Corruption(file.path(), footer.table_offset + at,
                        "segment offset table: wrong checksum of a page");
    }
  }
  const uint64_t table_size = uint64_t{footer.table_pages} * kOffsetTablePageSize;
  VARVE_RETURN_IF_ERROR(CheckFences(file, footer, {bytes.data() + table_size, footer.fences_size}));
  return std::make_shared<const SegmentIndex>(footer, std::move(bytes));
}

absl::StatusOr<std::shared_ptr<const LoadedFences>> LoadedFences::Load(
    const File& file, const SegmentFooter& footer) {
  auto loaded = std::make_shared<LoadedFences>();
  loaded->bytes_ = AlignedBytes(footer.fences_size);
  VARVE_RETURN_IF_ERROR(ReadFully(file, footer.fences_offset, loaded->bytes_));
  VARVE_RETURN_IF_ERROR(CheckFences(file, footer, {loaded->bytes_.data(), loaded->bytes_.size()}));
  loaded->fences_ =
      SegmentFences(loaded->bytes_.data(), footer.fence_count, footer.data_size, footer.block_size);
  return std::shared_ptr<const LoadedFences>(std::move(loaded));
}

}  // namespace varve
