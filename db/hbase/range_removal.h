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
// whether none is left.
absl::StatusOr<bool> RemovePlace(HbaseContext* context, const KeyPlace& place,
                                 const std::function<bool()>& is_over);

// Scans the rows of a place, their cells cut behind the header, and hands each slice to `take`
// until that says to end (false). Returns whether it came to the end.
using RowSlice = std::vector<std::pair<std::string, std::string>>;
absl::StatusOr<bool> ScanHeaders(const HbaseContext& context, const PlacedSpace& place,
                                 std::string lower, const std::string& upper,
                                 const std::function<absl::StatusOr<bool>(const RowSlice&)>& take);

// Writes rows each by itself and waits for them. Returns the status of each.
std::vector<absl::Status> CommitEachAndWait(const HbaseContext& context, const std::string& table,
                                            std::vector<HbaseRowWrite> writes);

}  // namespace varve
