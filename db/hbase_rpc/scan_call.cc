#include "db/hbase_rpc/scan_call.h"

#include <algorithm>
#include <utility>

namespace varve {
namespace {

// A server sends up to so many bytes where only the beginnings of values are wanted, as it cannot
// cut them.
constexpr size_t kWholeValues = size_t{4} << 20;

}  // namespace

void ScanCall::AnswerUndone(const absl::Status& why) {
  const bool may_be_empty = rest_.is_sweep || !rest_.tests.empty();
  const bool has_moved = !slice_.rows.empty() || (may_be_empty && Position() != begin_);
  if (!has_moved) {
    const RegionPtr silent = rest_.is_sweep && absl::IsUnavailable(why) ? Silent() : nullptr;
    if (silent == nullptr) return done_(why);
    slice_.has_left_out = true;
    slice_.is_complete = !PassRegion(*silent);
  }
  slice_.rest = Position();
  done_(std::move(slice_));
}

RegionPtr ScanCall::Silent() {
  if (rest_.is_descending) return nullptr;
  if (asked_ != nullptr && asked_->Holds(rest_.lower)) return asked_;
  RegionPtr told = environment().locator.FindTold(table(), rest_.lower);
  return told != nullptr && told->server.empty() ? told : nullptr;
}

void ScanCall::ReadOn() {
  const bool is_empty = !rest_.upper.empty() && rest_.lower >= rest_.upper;
  if (is_empty || rest_.max_rows == 0) return EndComplete(is_empty);
  RegionQuery query{table(), Position(), rest_.is_descending};
  Find(std::move(query), [this](const RegionPtr& region) {
    asked_ = region;
    HbaseScanRequest wanted = rest_;
    wanted.max_bytes = std::max<size_t>(rest_.keys_only ? kWholeValues : rest_.max_bytes, 1);
    Ask(region, "Scan", RegionScan(*region, wanted),
        [this, region](const RpcResult& result) { TakeAnswer(region, result); });
  });
}

void ScanCall::TakeAnswer(const RegionPtr& region, const RpcResult& result) {
  hbase::pb::ScanResponse response;
  std::vector<std::vector<AnsweredCell>> rows;
  std::optional<HbaseFailure> failure = result.failure;
  if (!failure.has_value() && (!ParseMessage(result.message, &response) ||
                               !TakeScanResults(response, result.cells, &rows))) {
    failure = FailureOfGarbage("a damaged scan", region->server);
  }
  if (!failure.has_value()) {
    pace_ = RetryPace();
    return TakeRows(region, response, rows);
  }
  if (failure->is_final()) return GiveUp(failure->status);
  TryLater(*failure, region, pace_, [this] { ReadOn(); });
}

void ScanCall::TakeRows(const RegionPtr& region, const hbase::pb::ScanResponse& response,
                        const std::vector<std::vector<AnsweredCell>>& rows) {
  const std::string before = Position();
  bool is_full = false;
  for (const std::vector<AnsweredCell>& cells : rows) {
    if (cells.empty()) continue;
    if (is_full) return EndComplete(false);
    const AnsweredCell& cell = cells.front();
    const bool is_below = rest_.upper.empty() || cell.row < rest_.upper;
    // A row that was taken before, or that is none of the range.
    if (cell.row < rest_.lower || !is_below) continue;
    const size_t value_size =
        rest_.keys_only ? std::min(cell.value.size(), kHbaseKeysOnlyPrefix) : cell.value.size();
    slice_.rows.emplace_back(cell.row, cell.value.substr(0, value_size));
    PassRow(cell.row, false);
    --rest_.max_rows;
    rest_.max_bytes -= std::min(rest_.max_bytes, cell.row.size() + value_size);
    is_full = rest_.max_rows == 0 || rest_.max_bytes == 0;
  }
  // More may be left of this region also where the server had no time to look for it.
  const bool region_has_more = response.more_results_in_region() || response.heartbeat_message();
  if (!is_full && region_has_more && response.has_cursor()) {
    PassRow(response.cursor().row(), true);
  }
  const bool is_left = region_has_more || PassRegion(*region);
  if (!is_left || is_full) return EndComplete(!is_left);
  if (before != Position()) return ReadOn();
  const auto trouble = absl::UnavailableError("a server of HBase takes long to find a row");
  TryLater({HbaseFailure::Kind::kBusy, false, trouble}, region, pace_, [this] { ReadOn(); });
}

void ScanCall::PassRow(std::string_view row, bool is_included) {
  if (rest_.is_descending) {
    std::string upper(row);
    if (is_included) upper.push_back('\0');
    if (rest_.upper.empty() || upper < rest_.upper) rest_.upper = std::move(upper);
  } else {
    std::string lower(row);
    if (!is_included) lower.push_back('\0');
    if (lower > rest_.lower) rest_.lower = std::move(lower);
  }
}

bool ScanCall::PassRegion(const Region& region) {
  if (rest_.is_descending) {
    if (region.start.empty() || region.start <= rest_.lower) return false;
    rest_.upper = region.start;
    return true;
  }
  if (region.end.empty() || (!rest_.upper.empty() && region.end >= rest_.upper)) return false;
  rest_.lower = region.end;
  return true;
}

void ScanCall::EndComplete(bool is_complete) {
  slice_.is_complete = is_complete;
  slice_.rest = Position();
  if (End()) done_(std::move(slice_));
}

}  // namespace varve
