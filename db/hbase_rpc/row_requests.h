// The messages that ask a region's server for rows, and what their answers say.
//
// Thread-safety: Free functions keep no state.
#pragma once

#include <Client.pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/hbase_rpc/cell_block.h"
#include "db/hbase_rpc/hbase_client.h"
#include "db/hbase_rpc/hbase_failure.h"
#include "db/hbase_rpc/region_cache.h"

namespace varve {

inline constexpr std::string_view kHbaseFamily = "v";

void NameRegion(const Region& region, hbase::pb::RegionSpecifier* specifier);

// Makes `get` read the value of `row`.
void FillGet(std::string_view row, hbase::pb::Get* get);

// One atomic commit of rows of `region`, by MultiRowMutationService.
hbase::pb::CoprocessorServiceRequest MutateRowsRequest(
    const Region& region, const std::vector<const HbaseRowWrite*>& writes);
// Returns whether the conditions held and the rows were written; nullopt where the answer cannot
// be read.
std::optional<bool> ReadMutateRowsAnswer(std::string_view message);

// The rows of [lower, upper) that lie in `region`.
hbase::pb::ScanRequest RegionScan(const Region& region, const HbaseScanRequest& request);

// Takes the cells of a result out of the message and the cells behind it. Returns false where they
// are damaged.
bool TakeResult(const hbase::pb::Result& result, CellBlock* cells,
                std::vector<AnsweredCell>* taken);
// The cells of each row of the answer to a scan. The views point into both arguments.
bool TakeScanResults(const hbase::pb::ScanResponse& response, std::string_view cells,
                     std::vector<std::vector<AnsweredCell>>* rows);

// Returns whether a row with `value` is what `write` expects.
bool IsExpected(const HbaseRowWrite& write, const std::optional<std::string>& value);
// Returns whether a row with `value` is what `write` leaves behind.
bool IsWritten(const HbaseRowWrite& write, const std::optional<std::string>& value);
// Returns whether a row with `value` shows that no attempt at `write` has happened or will.
bool IsTooLate(const HbaseRowWrite& write, const std::optional<std::string>& value);

// Parses a message that a server sent; returns false where it is none.
template <typename Message>
bool ParseMessage(std::string_view bytes, Message* message) {
  return message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace varve
