// ReadCall reads the values of rows. Rows whose regions one server has are asked for together; what
// fails is asked for again, by itself. Rows that were not read when the call ends have its error,
// and the others their values.
//
// Thread-safety: As HbaseCall.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/hbase_rpc/hbase_call.h"
#include "db/hbase_rpc/row_requests.h"

namespace varve {

class ReadCall final : public HbaseCall {
 public:
  ReadCall(CallEnvironment& environment, std::string table, std::vector<std::string> rows,
           Time deadline, HbaseClient::RowsDone done)
      : HbaseCall(environment, std::move(table), deadline),
        rows_(std::move(rows)),
        values_(rows_.size(), NotRead()),
        undone_(rows_.size()),
        done_(std::move(done)) {}

 private:
  // Rows by their numbers.
  using Numbers = std::vector<uint32_t>;
  struct RegionRows {
    RegionPtr region;
    Numbers rows;
  };
  // One request asks one server for these.
  using Group = std::vector<RegionRows>;

  // Stands for a row of which nothing is known yet; no row fails so.
  static absl::Status NotRead() { return absl::UnknownError(""); }

  void Start() override;
  void AnswerUndone(const absl::Status& why) override;

  // Sends the requests for rows whose regions are known, and has the others looked up. Each goes
  // on once its region is known, and waits for no other one.
  void ReadAll(const Numbers& rows, const RetryPace& pace);
  void Read(Group group, const RetryPace& pace);
  void TakeRow(uint32_t row, const RegionPtr& region, const RpcResult& result, RetryPace pace);
  void TakeGroup(const Group& group, const RpcResult& result, RetryPace pace);
  // Takes what an answer says of a region; returns false where it cannot be read.
  bool TakeRegion(const RegionRows& asked, const hbase::pb::RegionActionResult& result,
                  CellBlock* cells, RetryPace& pace);
  bool TakeValue(uint32_t row, const hbase::pb::Result& result, CellBlock* cells);
  void Retry(const RegionRows& rows, const HbaseFailure& failure, RetryPace& pace);
  void EndRow(uint32_t row, HbaseClient::RowValue value);
  void EndIfDone();

  const std::vector<std::string> rows_;
  std::vector<HbaseClient::RowValue> values_;
  size_t undone_;
  const HbaseClient::RowsDone done_;
};

// ReadSteps says how many rows a call reads at a time that looks into what became of a write and
// keeps nothing of their values: so many that these take kBytes at most if they are like the last.
class ReadSteps {
 public:
  size_t rows() const { return rows_; }

  void Take(const std::vector<HbaseClient::RowValue>& values) {
    size_t bytes = 0;
    for (const HbaseClient::RowValue& value : values) {
      if (value.ok() && value->has_value()) bytes += (*value)->size();
    }
    const size_t each = bytes / std::max<size_t>(values.size(), 1) + 1;
    rows_ = std::clamp<size_t>(kBytes / each, 1, kMostRows);
  }

 private:
  static constexpr size_t kBytes = size_t{16} << 20;
  static constexpr size_t kMostRows = 512;

  size_t rows_ = 16;
};

}  // namespace varve
