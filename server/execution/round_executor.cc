#include "server/execution/round_executor.h"

#include <chrono>

#include "server/execution/execution_policy.h"
#include "util/base/assert.h"

namespace varve {

bool RoundExecutor::Execute(absl::Span<BatchExecutor* const> batches) {
  if (batches.size() > 1) {
    Join(RequestRun::Kind::kGets, batches);
    Join(RequestRun::Kind::kSets, batches);
  }
  bool submitted = false;
  for (BatchExecutor* const batch : batches) {
    if (batch->progress() == BatchExecutor::Progress::kMore)
      (void)batch->Run(BatchExecutor::Where::kLoop);
    submitted = batch->TakeSubmitted() || submitted;
  }
  return submitted;
}

void RoundExecutor::Join(RequestRun::Kind kind, absl::Span<BatchExecutor* const> batches) {
  const bool may_block = server_->options.execution == Execution::kInline;
  const size_t most_here = may_block ? SIZE_MAX : kInlineInputBytes;
  RequestRun& run = RequestRun::OfThread();
  run.Begin(kind, server_, most_here);
  for (BatchExecutor* const batch : batches) {
    if (!batch->MayJoin(kind)) continue;
    const size_t requests = batch->batch().requests.size();
    if (requests > run.room()) {
      ExecuteJoint(&run, kind);
      run.Begin(kind, server_, most_here);
    }
    (void)run.Take(batch->cursor(), requests);
  }
  if (run.size() > 0) ExecuteJoint(&run, kind);
}

void RoundExecutor::ExecuteJoint(RequestRun* run, RequestRun::Kind kind) {
  VARVE_ASSERT(run->size() > 0);
  const auto begin = std::chrono::steady_clock::now();
  (void)run->Execute();  // what is left unanswered is executed apart, in the same round
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
  if (kind == RequestRun::Kind::kGets && ++joint_reads_ % kMeasureEvery == 0)
    server_->read_cost.Measured(taken.count(), static_cast<int64_t>(run->size()));
  run->Account(static_cast<uint64_t>(taken.count()));
}

}  // namespace varve
