// EachCall writes rows that have nothing to do with each other. Those of one region go into one
// commit, as each commit costs a sync of the region's log. Where a condition of such a commit
// fails, the rows are read, those that do not hold what is expected are answered, and the others
// are tried again; in commits of half the size if that has failed before. A commit that a server
// refuses for good is tried row by row. What becomes of attempts whose outcome is unknown is
// found out as CommitCall does it, for each row by itself.
//
// Thread-safety: As HbaseCall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/hbase_rpc/hbase_call.h"
#include "db/hbase_rpc/read_call.h"
#include "db/hbase_rpc/row_requests.h"

namespace varve {

class EachCall final : public HbaseCall {
 public:
  EachCall(CallEnvironment& environment, std::string table, std::vector<HbaseRowWrite> writes,
           Time deadline, HbaseClient::EachDone done)
      : HbaseCall(environment, std::move(table), deadline),
        writes_(std::move(writes)),
        states_(writes_.size()),
        undone_(writes_.size()),
        done_(std::move(done)) {}

 private:
  // Writes by their numbers.
  using Numbers = std::vector<uint32_t>;
  struct State {
    absl::Status status;
    bool is_done = false;
    bool may_have_happened = false;
    bool is_under_way = false;  // an attempt that is not answered
  };
  // How a set of rows is tried: how many in a commit, after what pauses.
  struct Manner {
    size_t rows_at_a_time;
    RetryPace pace;
    bool has_failed = false;  // by a condition
  };
  // Rows that are read, of which the first `read` ones have been, and those of them that are to be
  // tried again.
  struct Look {
    Numbers numbers;
    Manner manner;
    ReadSteps steps;
    size_t read = 0;
    Numbers left;
  };

  void Start() override;
  void AnswerUndone(const absl::Status& why) override;

  // Sends the commits of rows whose regions are known, and has the others looked up. Each goes
  // on once its region is known, and waits for no other one.
  void WriteAll(const Numbers& numbers, const Manner& manner);
  void WriteRegion(const RegionPtr& region, const Numbers& numbers, const Manner& manner);
  void Write(const RegionPtr& region, const Numbers& numbers, const Manner& manner);
  void TakeAnswer(const RegionPtr& region, const Numbers& numbers, const Manner& manner,
                  const RpcResult& result);
  void TakeFailure(const RegionPtr& region, const Numbers& numbers, Manner manner,
                   const HbaseFailure& failure);
  // Reads the rows, in steps, to find out what became of an attempt, and why a condition failed.
  void LookAt(const Numbers& numbers, const Manner& manner);
  void LookOn(const std::shared_ptr<Look>& look);
  void TakeValues(Look* look, const std::vector<HbaseClient::RowValue>& values);
  void EndRow(uint32_t number, const absl::Status& status);
  void EndRowUnknown(uint32_t number, const absl::Status& why);
  void EndIfDone();

  const std::vector<HbaseRowWrite> writes_;
  std::vector<State> states_;
  size_t undone_;
  size_t looks_ = 0;  // under way
  const HbaseClient::EachDone done_;
};

}  // namespace varve
