#include "db/hbase_rpc/region_locator.h"

#include <HBase.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "db/hbase_rpc/row_requests.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr uint32_t kRegionsAtATime = 20;
constexpr std::string_view kMetaRegion = "hbase:meta,,1";
constexpr std::string_view kMessageMark = "PBUF";

// Between what region ids are, in the order of hbase:meta.
constexpr std::string_view kBeforeIds = "00000000000000";
constexpr std::string_view kBehindIds = "99999999999999";

// The row of hbase:meta from which the scan goes against the order. It has the limit of all rows,
// so that no region begins between a row that is cut for it and the whole one.
std::string FirstMetaRow(const RegionQuery& query) {
  if (query.is_before && query.row.empty()) return query.table + '\0';
  const std::string_view ids = query.is_before ? kBeforeIds : kBehindIds;
  const size_t most =
      kHbaseMaxRowSize - std::min(kHbaseMaxRowSize, query.table.size() + ids.size() + 2);
  const bool is_cut = query.row.size() > most;
  return fmt::format("{},{},{}", query.table, query.row.substr(0, most), is_cut ? kBehindIds : ids);
}

hbase::pb::ScanRequest MetaScan(const RegionQuery& query) {
  hbase::pb::ScanRequest request;
  request.mutable_region()->set_type(hbase::pb::RegionSpecifier::REGION_NAME);
  request.mutable_region()->set_value(kMetaRegion.data(), kMetaRegion.size());
  hbase::pb::Scan* scan = request.mutable_scan();
  scan->add_column()->set_family("info");
  scan->set_reversed(true);
  scan->set_start_row(FirstMetaRow(query));
  scan->set_stop_row(query.table + ",,");
  scan->set_include_stop_row(true);
  scan->set_caching(kRegionsAtATime);
  scan->set_readtype(hbase::pb::Scan::PREAD);
  request.set_number_of_rows(kRegionsAtATime);
  request.set_limit_of_rows(kRegionsAtATime);
  request.set_close_scanner(true);
  return request;
}

// The region that a row of hbase:meta describes; null where it is not open anywhere, or where it
// has been split.
RegionPtr RegionOf(const std::vector<AnsweredCell>& cells) {
  hbase::pb::RegionInfo info;
  auto region = std::make_shared<Region>();
  bool has_info = false;
  for (const AnsweredCell& cell : cells) {
    if (cell.qualifier == "server") region->server = std::string(cell.value);
    if (cell.qualifier != "regioninfo" || !cell.value.starts_with(kMessageMark)) continue;
    has_info = ParseMessage(cell.value.substr(kMessageMark.size()), &info);
    region->name = std::string(cell.row);
  }
  const bool is_split = info.offline() || info.split();
  if (!has_info || is_split || info.replica_id() != 0 || region->server.empty()) return nullptr;
  region->start = info.start_key();
  region->end = info.end_key();
  if (!region->end.empty() && region->start >= region->end) return nullptr;
  return region;
}

}  // namespace

RegionPtr RegionLocator::AnswerTo(const RegionQuery& query) const {
  return query.is_before ? cache_.FindBefore(query.table, query.row)
                         : cache_.Find(query.table, query.row);
}

void RegionLocator::Find(RegionQuery query, Time deadline, Done done) {
  if (RegionPtr known = AnswerTo(query); known != nullptr) return done(std::move(known));
  const std::string table = query.table;
  Lookups& lookups = lookups_[table];
  lookups.waiting.push_back({std::move(query), deadline, std::move(done)});
  if (lookups.is_under_way) return;
  lookups.is_under_way = true;
  lookups.pace = RetryPace();
  LookUp(table);
}

void RegionLocator::LookUp(const std::string& table) {
  context_.counters.region_lookups.fetch_add(1, std::memory_order_relaxed);
  registry_.FindMeta([this, table](const absl::StatusOr<std::string>& server) {
    if (!server.ok()) return GoOn(table, server.status());
    ScanMeta(table, *server);
  });
}

void RegionLocator::ScanMeta(const std::string& table, const std::string& server) {
  const Lookups& lookups = lookups_[table];
  VARVE_ASSERT(!lookups.waiting.empty());
  const Time end = std::chrono::steady_clock::now() + context_.options.attempt_timeout;
  servers_.Call(server, kClientService, "Scan", MetaScan(lookups.waiting.front().query), end,
                [this, table](const RpcResult& result) { TakeAnswer(table, result); });
}

void RegionLocator::TakeAnswer(const std::string& table, const RpcResult& result) {
  if (result.failure.has_value()) {
    if (result.failure->is_misplaced()) registry_.ForgetMeta();
    if (result.failure->is_final()) return FailAll(table, result.failure->status);
    return GoOn(table, result.failure->status);
  }
  size_t regions = 0;
  if (!TakeMeta(table, result.message, result.cells, &regions)) {
    return GoOn(table, absl::UnavailableError("an answer of hbase:meta cannot be read"));
  }
  if (regions == 0) {
    return FailAll(table, absl::NotFoundError(
                              fmt::format("HBase has no table '{}', or no region of it", table)));
  }
  GoOn(table, absl::UnavailableError(
                  fmt::format("a region of table '{}' is open on no server of HBase", table)));
}

bool RegionLocator::TakeMeta(std::string_view table, std::string_view message,
                             std::string_view cells, size_t* regions) {
  hbase::pb::ScanResponse response;
  std::vector<std::vector<AnsweredCell>> rows;
  if (!ParseMessage(message, &response) || !TakeScanResults(response, cells, &rows)) return false;
  *regions = rows.size();
  // Those of the past come before those that took their place, so that the latter go in last.
  std::reverse(rows.begin(), rows.end());
  for (const std::vector<AnsweredCell>& row : rows) {
    if (RegionPtr region = RegionOf(row); region != nullptr) cache_.Insert(table, region);
  }
  return true;
}

void RegionLocator::GoOn(const std::string& table, const absl::Status& last) {
  const Time now = std::chrono::steady_clock::now();
  std::vector<Waiter> waiting = std::move(lookups_[table].waiting);
  lookups_[table].waiting.clear();
  std::vector<Waiter> left;
  size_t answered = 0;
  for (Waiter& waiter : waiting) {
    if (RegionPtr known = AnswerTo(waiter.query); known != nullptr) {
      waiter.done(std::move(known));
      ++answered;
    } else if (waiter.deadline <= now) {
      waiter.done(absl::UnavailableError(last.message()));
    } else {
      left.push_back(std::move(waiter));
    }
  }
  // Those who were answered may have asked anew meanwhile.
  Lookups& lookups = lookups_[table];
  std::move(left.begin(), left.end(), std::back_inserter(lookups.waiting));
  lookups.is_under_way = !lookups.waiting.empty();
  if (!lookups.is_under_way) return;
  if (answered > 0) {
    lookups.pace = RetryPace();
    return LookUp(table);
  }
  // The next lookup is that of another one: the region of the first may be open nowhere for long.
  std::rotate(lookups.waiting.begin(), lookups.waiting.begin() + 1, lookups.waiting.end());
  context_.timers.At(now + lookups.pace.Next(), [this, table] { LookUp(table); });
}

void RegionLocator::FailAll(const std::string& table, const absl::Status& why) {
  std::vector<Waiter> waiting = std::move(lookups_[table].waiting);
  lookups_.erase(table);
  for (Waiter& waiter : waiting) waiter.done(why);
}

}  // namespace varve
