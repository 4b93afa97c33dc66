// The executor of a round: it answers the batches that one round of an I/O loop executes on the
// loop's own thread. Small batches that are GETs alone, or plain SETs alone, are joined to runs
// across connections (server/execution/request_run.h); then each batch that is left runs by itself.
// Without pipelines joint runs serve 17 % more requests (docs/performance.md).
//
// Thread-safety: an executor belongs to one loop's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/execution/batch_executor.h"
#include "server/execution/request_run.h"
#include "server/execution/server_state.h"

namespace varve {

class RoundExecutor {
 public:
  explicit RoundExecutor(ServerState* server) : server_(server) {}

  // Executes the batches, each as far as it goes in this round; progress() of each says whether it
  // is done. Returns whether something was submitted to the store. Requires: each batch is placed
  // here, and BeginReplies() was called for it.
  [[nodiscard]] bool Execute(absl::Span<BatchExecutor* const> batches);

 private:
  static constexpr uint32_t kMeasureEvery = 16;  // joint reads

  void Join(RequestRun::Kind kind, absl::Span<BatchExecutor* const> batches);
  void ExecuteJoint(RequestRun* run, RequestRun::Kind kind);

  ServerState* const server_;
  uint32_t joint_reads_ = 0;
};

}  // namespace varve
