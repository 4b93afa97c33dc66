// A value decoder reads the compressed values of one segment. A record of an iterator over the
// segment carries it (RecordView::decoder), so that a reader decompresses the values that it wants
// and no others.
//
// Thread-safety: all functions may be called by any thread.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "db/compression/value_dictionary.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "varve/compression.h"

namespace varve {

class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;

  // Returns the plain value of a record of the segment whose flags have kCompressed and not
  // kSeparatedValue. The view points into `*buffer`, which only grows. Returns DataLoss, with file
  // and offset, if the value or the dictionary is damaged.
  [[nodiscard]] virtual absl::StatusOr<std::string_view> PlainValue(const RecordView& record,
                                                                    std::string* buffer) = 0;
  // Returns the dictionary of the segment; null if it has none. Returns DataLoss if it is damaged.
  [[nodiscard]] virtual absl::StatusOr<const ValueDictionary*> Dictionary() = 0;
  // Returns how the merge that wrote the segment compressed the values of a generation.
  virtual Compression CompressionOf(NamespaceGeneration generation) const = 0;
};

// Returns the plain value of a record of a segment, as ValueDecoder::PlainValue does; that of a
// record that is not compressed is where it is.
// Requires: the value is not kept apart.
inline absl::StatusOr<std::string_view> PlainValueOf(const RecordView& record,
                                                     std::string* buffer) {
  if ((record.flags & kCompressed) == 0) return record.value;
  if (record.decoder == nullptr) return absl::DataLossError("a compressed value has no decoder");
  return record.decoder->PlainValue(record, buffer);
}

}  // namespace varve
