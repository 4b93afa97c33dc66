// The segment decoder reads the compressed values of one segment. The segment owns it, and records
// of iterators over the segment carry it (RecordView::decoder).
//
// It reads the dictionary once, when the offset table is loaded or at the first value that needs
// it, and keeps it as long as the segment is open. A segment whose dictionary can't be read is
// damaged (Segment::is_damaged), so that merges leave it alone.
//
// Thread-safety: all functions may be called by any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/compression/value_decoder.h"
#include "db/segment/segment_dictionary.h"

namespace varve {

class Segment;

class SegmentDecoder final : public ValueDecoder {
 public:
  // The dictionary's memory counts against `budget`, which may be null if there is no segment file.
  SegmentDecoder(Segment* segment, OffsetTableCache* budget)
      : segment_(*segment), dictionary_(budget) {}

  [[nodiscard]] absl::StatusOr<std::string_view> PlainValue(const RecordView& record,
                                                            std::string* buffer) override;
  [[nodiscard]] absl::StatusOr<const ValueDictionary*> Dictionary() override;
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const ValueDictionary>> ShareDictionary();
  Compression CompressionOf(NamespaceGeneration generation) const override;
  // Reads the dictionary, if there is one. What fails then, the first reader of a value meets
  // again.
  void LoadDictionary();

 private:
  // Notes the segment's damage if that is why a read of the dictionary ended as `read` says.
  void NoteIfDamage(const absl::Status& read);
  // Returns the error for a compressed value that passes the checksum and can't be decompressed.
  absl::Status UnreadableValue(const RecordView& record);

  Segment& segment_;
  ResidentDictionary dictionary_;
};

}  // namespace varve
