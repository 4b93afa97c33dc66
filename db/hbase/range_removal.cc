#include "db/hbase/range_removal.h"

#include <utility>

#include "db/hbase/range_reads.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kRowsOfSlice = 500;

}  // namespace

absl::StatusOr<bool> ScanHeaders(const HbaseContext& context, const PlacedSpace& place,
                                 std::string lower, const std::string& upper,
                                 const std::function<absl::StatusOr<bool>(const RowSlice&)>& take) {
  while (lower < upper) {
    HbaseScanRequest request{.lower = lower, .upper = upper};
    request.max_rows = kRowsOfSlice;
    request.keys_only = true;
    using Slice = absl::StatusOr<HbaseScanSlice>;
    const Slice slice = AwaitAnswer<Slice>([&](HbaseClient::ScanDone done) {
      context.client->ScanRows(place.table, request, context.BackgroundDeadline(), std::move(done));
    });
    if (!slice.ok()) return slice.status();
    VARVE_ASSIGN_OR_RETURN(const bool goes_on, take(slice->rows));
    if (!goes_on) return false;
    if (slice->is_complete || slice->rows.empty()) return true;
    lower = slice->rows.back().first + '\0';
  }
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
    if (is_over()) return false;
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
    return true;
  };
  return ScanHeaders(*context, placed, placed.prefix, placed.behind, take);
}

}  // namespace varve
