// CommitCall writes rows of one region, all or nothing.
//
// An attempt whose outcome is unknown, as its server was lost over it, is looked into: the rows are
// read. One that holds what was to be put says that the write has happened, as no other writer puts
// the same value. Where all hold what is expected, the write has not happened, and is tried again:
// should the first attempt come late, either of them fails by its conditions. Where a row is behind
// what was to be written, and not as expected, the write has not happened either, and never will.
// In all other cases nobody can tell, and the caller is told so.
//
// Thread-safety: As HbaseCall.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "db/hbase_rpc/hbase_call.h"
#include "db/hbase_rpc/read_call.h"
#include "db/hbase_rpc/row_requests.h"

namespace varve {

class CommitCall final : public HbaseCall {
 public:
  CommitCall(CallEnvironment& environment, std::string table, std::vector<HbaseRowWrite> writes,
             Time deadline, HbaseClient::CommitDone done)
      : HbaseCall(environment, std::move(table), deadline),
        writes_(std::move(writes)),
        done_(std::move(done)) {}

 private:
  // Findings are all that the first rows say of an attempt.
  struct Findings {
    ReadSteps steps;
    size_t rows = 0;
    bool has_put = false;
    bool all_deleted = true;
    bool is_too_late = false;
    bool all_expected = true;
  };

  void Start() override { Attempt(); }
  void AnswerUndone(const absl::Status& why) override;

  void Attempt();
  void Commit(const RegionPtr& region);
  void TakeAnswer(const RegionPtr& region, const RpcResult& result);
  // Reads the rows behind the first ones, in steps, to find out what became of an attempt.
  void Look(const Findings& found);
  void TakeValues(Findings found, const std::vector<HbaseClient::RowValue>& values);
  void Conclude(const Findings& found);
  void AttemptLater(const HbaseFailure& failure, const RegionPtr& region);
  void Answer(const absl::Status& status);

  const std::vector<HbaseRowWrite> writes_;
  const HbaseClient::CommitDone done_;
  RetryPace pace_;
  // Says that the region was looked up again because it did not hold all rows.
  bool is_looked_up_again_ = false;
  bool may_have_happened_ = false;
  bool is_under_way_ = false;  // an attempt that is not answered
};

}  // namespace varve
