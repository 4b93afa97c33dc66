// Reads of ranges of one namespace's rows, slice by slice, without what is gone.
//
// Thread-safety: All functions are thread-safe. They answer on a thread of the client, or inside
// the call if the range is empty.
// Requires: The context outlives the answer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "db/hbase/hbase_context.h"
#include "varve/store.h"

namespace varve {

// DataLoss: a row of the table holds so many bytes, and they are no cell.
absl::Status NotACell(std::string_view table, size_t bytes);

// Reads as StoreReads::ReadRangeAsync does.
void ReadPlacedRange(const HbaseContext& context, PlacedSpace place, const ReadOptions& options,
                     StoreReads::RangeRequest range, StoreReads::RangeDone done);

// Reads as StoreReads::CountAsync does. Each slice has a deadline of its own.
void CountPlacedRange(const HbaseContext& context, const PlacedSpace& place, std::string_view lower,
                      std::string_view upper, StoreReads::CountDone done);

}  // namespace varve
