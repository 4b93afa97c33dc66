// ScanCall reads a slice of a range of rows, region by region, in either direction. Each request is
// a scan of its own, which the server forgets with its answer: no lease is kept, and a region that
// moves or splits between two requests costs nothing but a lookup.
//
// Thread-safety: As HbaseCall.
#pragma once

#include <string>

#include "db/hbase_rpc/hbase_call.h"
#include "db/hbase_rpc/row_requests.h"

namespace varve {

class ScanCall final : public HbaseCall {
 public:
  ScanCall(CallEnvironment& environment, std::string table, HbaseScanRequest request, Time deadline,
           HbaseClient::ScanDone done)
      : HbaseCall(environment, std::move(table), deadline),
        rest_(std::move(request)),
        begin_(Position()),
        done_(std::move(done)) {}

 private:
  void Start() override { ReadOn(); }
  // The rows that are there are a slice as well, and so are those that pass no test.
  void AnswerUndone(const absl::Status& why) override;

  void ReadOn();
  void TakeAnswer(const RegionPtr& region, const RpcResult& result);
  void TakeRows(const RegionPtr& region, const hbase::pb::ScanResponse& response,
                const std::vector<std::vector<AnsweredCell>>& rows);
  // Returns the region at which an ascending scan is: one that was asked, or that is open nowhere.
  // Null where it is not known.
  RegionPtr Silent();
  // Goes on behind `row`, or behind the rows of `region`; returns whether anything is left.
  void PassRow(std::string_view row, bool is_included);
  bool PassRegion(const Region& region);
  void EndComplete(bool is_complete);

  // The bound at which the scan goes on.
  std::string& Position() { return rest_.is_descending ? rest_.upper : rest_.lower; }

  // The rest of the range is still to be read.
  HbaseScanRequest rest_;
  const std::string begin_;  // the first position
  RegionPtr asked_;          // the last region that was asked
  HbaseScanSlice slice_;
  RetryPace pace_;
  const HbaseClient::ScanDone done_;
};

}  // namespace varve
