// The removal of many rows of a store over HBase, slice by slice.
//
// Thread-safety: All functions are thread-safe. They wait for the cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/space_catalog.h"

namespace varve {

// Removes all rows of a place that no namespace has any more, until `is_over` says to end. Returns
// whether none is left, as is so where somebody has dropped the table.
absl::StatusOr<bool> RemovePlace(HbaseContext* context, const KeyPlace& place,
                                 const std::function<bool()>& is_over);

// A sweep over rows, of which a part may have been done.
struct HeaderSweep {
  std::string table;
  std::string lower;  // where it goes on
  std::string upper;
  std::vector<HbaseValueTest> tests;  // as of HbaseScanRequest
  bool has_left_out = false;          // a region that did not answer
};

// Scans the rest of the sweep, the cells cut behind the header, and hands each slice to `take`
// until that says to end behind it (false). Returns whether it came to the end. After an error it
// goes on with the slice at which that came.
using RowSlice = std::vector<std::pair<std::string, std::string>>;
absl::StatusOr<bool> SweepHeaders(const HbaseContext& context, HeaderSweep* sweep,
                                  const std::function<absl::StatusOr<bool>(const RowSlice&)>& take);

// Writes rows each by itself and waits for them. Returns the status of each.
std::vector<absl::Status> CommitEachAndWait(const HbaseContext& context, const std::string& table,
                                            std::vector<HbaseRowWrite> writes);

}  // namespace varve
