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

// What a row of hbase:meta says of a region.
struct MetaRegion {
  Region region;  // without a server: it is open nowhere
  bool is_split = false;
};

// Returns nullopt where the row is damaged, or is none of a region.
std::optional<MetaRegion> MetaRegionOf(const std::vector<AnsweredCell>& cells) {
  hbase::pb::RegionInfo info;
  MetaRegion found;
  bool has_info = false;
  for (const AnsweredCell& cell : cells) {
    if (cell.qualifier == "server") found.region.server = std::string(cell.value);
    if (cell.qualifier != "regioninfo" || !cell.value.starts_with(kMessageMark)) continue;
    has_info = ParseMessage(cell.value.substr(kMessageMark.size()), &info);
    found.region.name = std::string(cell.row);
  }
  if (!has_info || info.replica_id() != 0) return std::nullopt;
  found.is_split = info.offline() || info.split();
  found.region.start = info.start_key();
  found.region.end = info.end_key();
  if (!found.region.end.empty() && found.region.start >= found.region.end) return std::nullopt;
  return found;
}

// Returns the rows around that of the query which belong to one region, or to none: `last` is the
// last region that begins before it.
Region BoundsOf(const RegionQuery& query, const Region& last) {
  Region bounds;
  const bool is_behind = query.is_before
                             ? !last.end.empty() && (query.row.empty() || last.end < query.row)
                             : !last.IsBelowEnd(query.row);
  bounds.start = is_behind ? last.end : last.start;
  bounds.end = !is_behind ? last.end : query.is_before ? query.row : query.row + '\0';
  return bounds;
}

}  // namespace

RegionPtr RegionLocator::AnswerTo(const std::string& table, const Waiter& waiter) const {
  if (waiter.is_before) return IfOpen(cache_.FindBefore(table, waiter.rows.front()));
  for (const std::string& row : waiter.rows) {
    if (RegionPtr known = FindKnown(table, row); known != nullptr) return known;
  }
  return nullptr;
}

bool RegionLocator::IsTold(const Lookups& lookups, std::string_view table, std::string_view row,
                           bool is_before) {
  return is_before ? lookups.told.FindBefore(table, row) != nullptr
                   : lookups.told.Find(table, row) != nullptr;
}

// Of the rows of one who waits, the last one comes first: a scan tells of the regions before it,
// too.
std::optional<RegionQuery> RegionLocator::NextOf(const std::string& table, const Lookups& lookups) {
  for (const Waiter& waiter : lookups.waiting) {
    const std::string* last = nullptr;
    for (const std::string& row : waiter.rows) {
      if ((last != nullptr && row <= *last) || lookups.asked.contains(row)) continue;
      if (!IsTold(lookups, table, row, waiter.is_before)) last = &row;
    }
    if (last != nullptr) return RegionQuery{table, *last, waiter.is_before};
  }
  return std::nullopt;
}

void RegionLocator::Find(RegionQuery query, Time deadline, Done done) {
  const std::string table = std::move(query.table);
  Wait(table, {{std::move(query.row)}, query.is_before, deadline, std::move(done)});
}

void RegionLocator::FindAny(const std::string& table, std::vector<std::string> rows, Time deadline,
                            Done done) {
  VARVE_ASSERT(!rows.empty());
  Wait(table, {std::move(rows), /*is_before=*/false, deadline, std::move(done)});
}

void RegionLocator::Wait(const std::string& table, Waiter waiter) {
  if (RegionPtr known = AnswerTo(table, waiter); known != nullptr)
    return waiter.done(std::move(known));
  Lookups& lookups = lookups_[table];
  lookups.waiting.push_back(std::move(waiter));
  if (std::exchange(lookups.is_under_way, true)) return;
  LookUp(table);
}

void RegionLocator::LookUp(const std::string& table) {
  context_.counters.region_lookups.fetch_add(1, std::memory_order_relaxed);
  registry_.FindMeta([this, table](const absl::StatusOr<std::string>& server) {
    if (!server.ok()) return GoOn(table, server.status(), /*has_told=*/false);
    ScanMeta(table, *server);
  });
}

void RegionLocator::ScanMeta(const std::string& table, const std::string& server) {
  Lookups& lookups = lookups_[table];
  VARVE_ASSERT(!lookups.waiting.empty());
  std::optional<RegionQuery> next = NextOf(table, lookups);
  if (!next.has_value()) {
    lookups.told.Clear();
    lookups.asked.clear();
    next = NextOf(table, lookups);
  }
  VARVE_ASSERT(next.has_value());
  const Time end = std::chrono::steady_clock::now() + context_.options.attempt_timeout;
  servers_.Call(server, kClientService, "Scan", MetaScan(*next), end,
                [this, query = *next](const RpcResult& result) { TakeAnswer(query, result); });
}

void RegionLocator::TakeAnswer(const RegionQuery& query, const RpcResult& result) {
  const std::string& table = query.table;
  lookups_[table].asked.insert(query.row);
  if (result.failure.has_value()) {
    if (result.failure->is_misplaced()) registry_.ForgetMeta();
    if (result.failure->is_final()) return FailAll(table, result.failure->status);
    return GoOn(table, result.failure->status, /*has_told=*/false);
  }
  size_t regions = 0;
  if (!TakeMeta(query, result.message, result.cells, &regions)) {
    return GoOn(table, absl::UnavailableError("an answer of hbase:meta cannot be read"),
                /*has_told=*/false);
  }
  if (regions == 0) {
    return FailAll(table, absl::NotFoundError(
                              fmt::format("HBase has no table '{}', or no region of it", table)));
  }
  GoOn(table,
       absl::UnavailableError(
           fmt::format("a region of table '{}' is open on no server of HBase", table)),
       IsTold(lookups_[table], table, query.row, query.is_before));
}

bool RegionLocator::TakeMeta(const RegionQuery& query, std::string_view message,
                             std::string_view cells, size_t* regions) {
  hbase::pb::ScanResponse response;
  std::vector<std::vector<AnsweredCell>> rows;
  if (!ParseMessage(message, &response) || !TakeScanResults(response, cells, &rows)) return false;
  *regions = rows.size();
  Lookups& lookups = lookups_[query.table];
  // Those of the past come before those that took their place, and those that are open nowhere
  // before those that are, so that what is right goes in last.
  std::reverse(rows.begin(), rows.end());
  std::optional<MetaRegion> found;
  std::vector<RegionPtr> closed, open;
  for (const std::vector<AnsweredCell>& row : rows) {
    found = MetaRegionOf(row);
    if (!found.has_value() || found->is_split) continue;
    (found->region.server.empty() ? closed : open)
        .push_back(std::make_shared<const Region>(found->region));
  }
  for (const std::vector<RegionPtr>* told : {&closed, &open}) {
    for (const RegionPtr& region : *told) {
      lookups.told.Insert(query.table, region);
      cache_.Insert(query.table, region);
    }
  }
  // Whoever waits for it asks no server, so that nobody else takes in that it is away.
  const RegionPtr wanted = query.is_before ? nullptr : FindTold(query.table, query.row);
  if (wanted != nullptr && wanted->server.empty())
    context_.away.NoteFailure(query.table, *wanted, std::chrono::steady_clock::now());
  // Nobody has the row, or one that was split.
  if (found.has_value() && !IsTold(lookups, query.table, query.row, query.is_before)) {
    lookups.told.Insert(query.table,
                        std::make_shared<const Region>(BoundsOf(query, found->region)));
  }
  return true;
}

void RegionLocator::GoOn(const std::string& table, const absl::Status& last, bool has_told) {
  const Time now = std::chrono::steady_clock::now();
  std::vector<Waiter> waiting = std::move(lookups_[table].waiting);
  lookups_[table].waiting.clear();
  std::vector<Waiter> left;
  size_t answered = 0;
  for (Waiter& waiter : waiting) {
    if (RegionPtr known = AnswerTo(table, waiter); known != nullptr) {
      waiter.done(std::move(known));
      ++answered;
    } else if (waiter.deadline <= now) {
      waiter.done(absl::UnavailableError(last.message()));
    } else {
      left.push_back(std::move(waiter));
    }
  }
  // Those who were answered may have asked anew meanwhile. They come last.
  Lookups& lookups = lookups_[table];
  std::move(lookups.waiting.begin(), lookups.waiting.end(), std::back_inserter(left));
  lookups.waiting = std::move(left);
  if (lookups.waiting.empty()) {
    lookups_.erase(table);
    return;
  }
  if (answered > 0) {
    lookups.pace = RetryPace();
    return LookUp(table);
  }
  if (has_told && NextOf(table, lookups).has_value()) return LookUp(table);
  context_.timers.At(now + lookups.pace.Next(), [this, table] { LookUp(table); });
}

void RegionLocator::FailAll(const std::string& table, const absl::Status& why) {
  std::vector<Waiter> waiting = std::move(lookups_[table].waiting);
  lookups_.erase(table);
  for (Waiter& waiter : waiting) waiter.done(why);
}

}  // namespace varve
