#include "db/hbase/range_removal.h"

#include <utility>

#include "db/hbase/range_reads.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kRowsOfSlice = 500;

}  // namespace

absl::StatusOr<bool> SweepHeaders(
    const HbaseContext& context, HeaderSweep* sweep,
    const std::function<absl::StatusOr<bool>(const RowSlice&)>& take) {
  while (sweep->lower < sweep->upper) {
    HbaseScanRequest request{.lower = sweep->lower, .upper = sweep->upper};
    request.max_rows = kRowsOfSlice;
    request.keys_only = true;
    request.tests = sweep->tests;
    request.is_sweep = true;
    using Slice = absl::StatusOr<HbaseScanSlice>;
    const Slice slice = AwaitAnswer<Slice>([&](HbaseClient::ScanDone done) {
      context.client->ScanRows(sweep->table, request, context.BackgroundDeadline(),
                               std::move(done));
    });
    if (!slice.ok()) return slice.status();
    VARVE_ASSIGN_OR_RETURN(const bool goes_on, take(slice->rows));
    sweep->has_left_out |= slice->has_left_out;
    if (slice->is_complete) break;
    sweep->lower = slice->rest;
    if (!goes_on) return false;
  }
  sweep->lower = sweep->upper;
  return true;
}

std::vector<absl::Status> CommitEachAndWait(const HbaseContext& context, const std::string& table,
                                            std::vector<HbaseRowWrite> writes) {
  if (writes.empty()) return {};
  return AwaitAnswer<std::vector<absl::Status>>([&](HbaseClient::EachDone done) {
    context.client->CommitEach(table, std::move(writes), context.BackgroundDeadline(),
                               std::move(done));
  });
}

absl::StatusOr<bool> RemovePlace(HbaseContext* context, const KeyPlace& place,
                                 const std::function<bool()>& is_over) {
  const PlacedSpace placed(context->options.table, place);
  const auto take = [&](const RowSlice& rows) -> absl::StatusOr<bool> {
    std::vector<HbaseRowWrite> writes;
    for (const auto& [row, bytes] : rows) {
      HbaseRowWrite& write = writes.emplace_back();
      const std::optional<HbaseCell> cell = DecodeCellHeader(bytes);
      if (!cell) return NotACell(placed.table, bytes.size());
      write.row = row;
      write.kind = HbaseRowWrite::Kind::kDelete;
      write.timestamp = cell->version;
    }
    absl::Status status;
    for (const absl::Status& each : CommitEachAndWait(*context, placed.table, std::move(writes)))
      status.Update(each);
    if (!status.ok()) return status;
    return !is_over();
  };
  HeaderSweep sweep{placed.table, placed.prefix, placed.behind, {}};
  const absl::StatusOr<bool> came_to_end = SweepHeaders(*context, &sweep, take);
  if (absl::IsNotFound(came_to_end.status())) return true;  // the table was dropped
  if (!came_to_end.ok()) return came_to_end.status();
  return *came_to_end && !sweep.has_left_out;
}

}  // namespace varve
