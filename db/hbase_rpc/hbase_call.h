// HbaseCall is what the calls of a client's user have in common: a deadline, an end that comes
// once, and pauses between attempts.
//
// Thread-safety: The thread that runs the io_context alone uses an object, once it has begun.
// Invariants: A call that has begun is one of `calls` until it has ended.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "db/hbase_rpc/client_context.h"
#include "db/hbase_rpc/hbase_failure.h"
#include "db/hbase_rpc/region_locator.h"
#include "db/hbase_rpc/retry_pace.h"
#include "db/hbase_rpc/server_pool.h"

namespace varve {

class HbaseCall;

// Calls need this of their client.
struct CallEnvironment {
  ClientContext& context;
  ServerPool& servers;
  RegionLocator& locator;
  std::unordered_set<std::shared_ptr<HbaseCall>> calls;
};

class HbaseCall : public std::enable_shared_from_this<HbaseCall> {
 public:
  using Time = ClientContext::Time;

  HbaseCall(CallEnvironment& environment, std::string table, Time deadline)
      : environment_(environment), table_(std::move(table)), deadline_(deadline) {}
  virtual ~HbaseCall() = default;
  HbaseCall(const HbaseCall&) = delete;
  HbaseCall& operator=(const HbaseCall&) = delete;

  void Begin();
  // Ends the call, if it has not ended, with `why`.
  void GiveUp(const absl::Status& why);

 protected:
  // Makes the first attempt.
  virtual void Start() = 0;
  // Answers a call that has ended before its work was done.
  virtual void AnswerUndone(const absl::Status& why) = 0;

  // Ends the call; returns false where it has ended before. Whoever gets true answers.
  bool End();
  bool has_ended() const { return has_ended_; }

  // Calls the server of `region`, and `then` with the answer unless the call has ended. Returns
  // false where nothing is asked any more, as the deadline has passed. If others of the server's
  // regions are asked, too, `then` notes which have answered.
  bool Ask(const RegionPtr& region, std::string_view method,
           const google::protobuf::MessageLite& parameter, RpcConnection::Done then,
           bool asks_others = false);
  // Takes in that the region has done what it was asked for.
  void NoteAnswer(const RegionPtr& region);
  // Finds a region, and calls `then` unless the call has ended. A failure ends the call.
  void Find(RegionQuery query, std::function<void(const RegionPtr& region)> then);
  // Calls `then` once the region of any of the rows is known, unless the call has ended. A failure
  // ends the call.
  void FindAny(std::vector<std::string> rows, std::function<void()> then);
  // Takes a failure that is not final in, and tries again after a pause. `region` is null where the
  // master was asked and no region.
  void TryLater(const HbaseFailure& failure, const RegionPtr& region, RetryPace& pace,
                std::function<void()> again);
  // Takes in that the region, if it is not null, did not answer, or is not where it was thought to
  // be.
  void NoteFailure(const HbaseFailure& failure, const RegionPtr& region);
  // Takes in what may be why the deadline will be missed.
  void Note(const absl::Status& trouble) { trouble_ = trouble; }

  CallEnvironment& environment() { return environment_; }
  const std::string& table() const { return table_; }
  Time deadline() const { return deadline_; }

 private:
  CallEnvironment& environment_;
  const std::string table_;
  const Time deadline_;
  const Time begun_at_ = std::chrono::steady_clock::now();
  TimerQueue::Id timer_;
  absl::Status trouble_;
  bool has_ended_ = false;
};

}  // namespace varve
