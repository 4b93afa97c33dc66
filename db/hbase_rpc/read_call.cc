#include "db/hbase_rpc/read_call.h"

#include <map>
#include <numeric>
#include <utility>

namespace varve {
namespace {

constexpr size_t kRowsAtATime = 1'000;

}  // namespace

void ReadCall::Start() {
  Numbers all(rows_.size());
  std::iota(all.begin(), all.end(), 0);
  ReadAll(all, RetryPace());
  EndIfDone();
}

void ReadCall::AnswerUndone(const absl::Status& why) {
  for (HbaseClient::RowValue& value : values_) {
    if (value.status() == NotRead()) value = why;
  }
  done_(std::move(values_));
}

void ReadCall::ReadAll(const Numbers& rows, const RetryPace& pace) {
  std::map<std::string, std::map<RegionPtr, Numbers>> servers;
  Numbers unknown;
  for (const uint32_t row : rows) {
    RegionPtr region = environment().locator.FindKnown(table(), rows_[row]);
    if (region == nullptr) {
      unknown.push_back(row);
    } else {
      servers[region->server][region].push_back(row);
    }
  }
  for (auto& [server, regions] : servers) {
    Group group;
    size_t size = 0;
    for (auto& [region, numbers] : regions) {
      size += numbers.size();
      group.push_back({region, std::move(numbers)});
      if (size < kRowsAtATime) continue;
      Read(std::exchange(group, Group()), pace);
      size = 0;
    }
    if (!group.empty()) Read(std::move(group), pace);
  }
  if (unknown.empty()) return;
  std::vector<std::string> wanted;
  wanted.reserve(unknown.size());
  for (const uint32_t row : unknown) wanted.push_back(rows_[row]);
  FindAny(std::move(wanted),
          [this, unknown = std::move(unknown), pace] { ReadAll(unknown, pace); });
}

void ReadCall::Read(Group group, const RetryPace& pace) {
  const RegionPtr region = group.front().region;
  if (group.size() == 1 && group.front().rows.size() == 1) {
    const uint32_t row = group.front().rows.front();
    hbase::pb::GetRequest request;
    NameRegion(*region, request.mutable_region());
    FillGet(rows_[row], request.mutable_get());
    Ask(region, "Get", request,
        [this, row, region, pace](const RpcResult& result) { TakeRow(row, region, result, pace); });
    return;
  }
  hbase::pb::MultiRequest request;
  for (const RegionRows& asked : group) {
    hbase::pb::RegionAction* action = request.add_regionaction();
    NameRegion(*asked.region, action->mutable_region());
    for (size_t i = 0; i < asked.rows.size(); ++i) {
      hbase::pb::Action* get = action->add_action();
      get->set_index(static_cast<uint32_t>(i));
      FillGet(rows_[asked.rows[i]], get->mutable_get());
    }
  }
  auto take = [this, group = std::move(group), pace](const RpcResult& result) {
    TakeGroup(group, result, pace);
  };
  Ask(region, "Multi", request, std::move(take), /*asks_others=*/true);
}

void ReadCall::TakeRow(uint32_t row, const RegionPtr& region, const RpcResult& result,
                       RetryPace pace) {
  hbase::pb::GetResponse response;
  CellBlock cells(result.cells);
  if (result.failure.has_value()) {
    Retry({region, {row}}, *result.failure, pace);
  } else if (!ParseMessage(result.message, &response) ||
             !TakeValue(row, response.result(), &cells)) {
    Retry({region, {row}}, FailureOfGarbage("a damaged row", region->server), pace);
  }
  EndIfDone();
}

void ReadCall::TakeGroup(const Group& group, const RpcResult& result, RetryPace pace) {
  hbase::pb::MultiResponse response;
  std::optional<HbaseFailure> failure = result.failure;
  if (!failure.has_value() &&
      (!ParseMessage(result.message, &response) ||
       static_cast<size_t>(response.regionactionresult_size()) != group.size())) {
    failure = FailureOfGarbage("a damaged answer", group.front().region->server);
  }
  if (failure.has_value()) {
    for (const RegionRows& asked : group) Retry(asked, *failure, pace);
    return EndIfDone();
  }
  CellBlock cells(result.cells);
  bool is_readable = true;
  for (size_t i = 0; i < group.size(); ++i) {
    is_readable =
        is_readable &&
        TakeRegion(group[i], response.regionactionresult(static_cast<int>(i)), &cells, pace);
    if (is_readable) continue;
    Retry(group[i], FailureOfGarbage("a damaged row", group[i].region->server), pace);
  }
  EndIfDone();
}

// Nothing is kept of an answer that turns out to be damaged.
bool ReadCall::TakeRegion(const RegionRows& asked, const hbase::pb::RegionActionResult& result,
                          CellBlock* cells, RetryPace& pace) {
  const std::string& server = asked.region->server;
  if (result.has_exception()) {
    Retry(asked,
          FailureOfException(result.exception().name(), result.exception().value(), false, server),
          pace);
    return true;
  }
  const auto damaged = [this, &asked, undone = undone_] {
    for (const uint32_t row : asked.rows) values_[row] = NotRead();
    undone_ = undone;
    return false;
  };
  std::vector<bool> is_taken(asked.rows.size(), false);
  RegionRows failed{asked.region, {}};
  HbaseFailure failure;
  for (const hbase::pb::ResultOrException& one : result.resultorexception()) {
    if (one.index() >= asked.rows.size() || is_taken[one.index()]) return damaged();
    is_taken[one.index()] = true;
    const uint32_t row = asked.rows[one.index()];
    if (!one.has_exception()) {
      if (!TakeValue(row, one.result(), cells)) return damaged();
      continue;
    }
    HbaseFailure why =
        FailureOfException(one.exception().name(), one.exception().value(), false, server);
    if (why.is_final()) {
      EndRow(row, why.status);
      continue;
    }
    failed.rows.push_back(row);
    failure = std::move(why);
  }
  for (size_t i = 0; i < is_taken.size(); ++i) {
    if (is_taken[i]) continue;
    failed.rows.push_back(asked.rows[i]);
    failure = FailureOfGarbage("an answer without a row", server);
  }
  failed.rows.empty() ? NoteAnswer(asked.region) : Retry(failed, failure, pace);
  return true;
}

bool ReadCall::TakeValue(uint32_t row, const hbase::pb::Result& result, CellBlock* cells) {
  std::vector<AnsweredCell> taken;
  if (!TakeResult(result, cells, &taken)) return false;
  if (taken.empty()) {
    EndRow(row, std::optional<std::string>());
    return true;
  }
  if (taken.front().row != rows_[row]) return false;
  EndRow(row, std::optional(std::string(taken.front().value)));
  return true;
}

void ReadCall::Retry(const RegionRows& rows, const HbaseFailure& failure, RetryPace& pace) {
  if (failure.is_final()) {
    for (const uint32_t row : rows.rows) EndRow(row, failure.status);
    return;
  }
  TryLater(failure, rows.region, pace, [this, rows = rows.rows, pace] { ReadAll(rows, pace); });
}

void ReadCall::EndRow(uint32_t row, HbaseClient::RowValue value) {
  values_[row] = std::move(value);
  --undone_;
}

void ReadCall::EndIfDone() {
  if (undone_ == 0 && End()) done_(std::move(values_));
}

}  // namespace varve
