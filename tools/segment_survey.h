// All that can still be read of a segment that may be damaged: for verifying, repairing and
// printing it while no server runs on it.
//
// Records are walked from front to back. Behind a damaged one the walk goes on with the next that
// the offset table names; where the table is damaged, too, with the next bytes that pass for a
// record and continue the order. Each part is checked, and all damage is listed, not only the
// first. Reads in pieces of 1 MiB, or a record where that is larger; memory: 8 bytes a key.
//
// Thread-safety: a function without state of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/compression/value_dictionary.h"
#include "db/format/range_tombstone.h"
#include "db/segment/segment_footer.h"
#include "type/record.h"
#include "util/os/file_system.h"

namespace varve {

struct SurveyedSegment {
  // Bytes of data in which no record can be read.
  struct Gap {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string after;   // tree key of the record before it; empty: none
    std::string before;  // of the record behind it; empty: none
  };

  std::optional<SegmentFooter> footer;  // if it can be read
  std::vector<absl::Status> damage;     // each DataLoss, with file and offset
  std::vector<Gap> gaps;
  // The dictionary of compressed values, if there is one that can be read; where the footer can't,
  // the first bytes of the file that pass for one.
  std::shared_ptr<const ValueDictionary> dictionary;
  std::vector<RangeTombstone> range_tombstones;
  bool range_tombstones_are_lost = false;  // there may have been some
  uint64_t records = 0;                    // that can be read
  uint64_t data_end = 0;                   // behind the last of them
  // The addresses of values to which the readable part of the offset table leads
  // (db/segment/segment_values.h), ascending; values of lost records are among them.
  std::vector<uint64_t> value_addresses;
};

// Returns the plain value of a record whose value is not kept apart; nothing if it can't be
// decompressed. The view points into the record or into `*buffer`.
std::optional<std::string_view> PlainValueWith(const ValueDictionary* dictionary,
                                               const RecordView& record, std::string* buffer);

// A record and the `size` bytes from `offset` on that it takes.
using VisitRecord =
    absl::FunctionRef<absl::Status(uint64_t offset, uint64_t size, const RecordView& record)>;

// Returns the key of the segment's first record, if the manifest tells it; else "".
inline std::string_view FirstKeyOf(const SegmentInfo& info) {
  return info.range_tombstones == 0 ? std::string_view(info.smallest) : std::string_view();
}

// Surveys segment `number` in `file`. `file_size` is what the manifest says, or the file's own, and
// `first_key` what FirstKeyOf() says, or "": with it, records that share bytes of their keys can be
// read also where both the footer and the first record are damaged. Errors are those of reading,
// and of `visit`.
[[nodiscard]] absl::StatusOr<SurveyedSegment> SurveySegment(const File& file, uint64_t number,
                                                            uint64_t file_size, VisitRecord visit,
                                                            std::string_view first_key = {});

}  // namespace varve
