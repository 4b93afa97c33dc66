// A session's batch on its way to a worker, there, and back: handed over alone, or lent to whoever
// helps with the round.
#include "server/net/io_loop.h"
#include "server/net/session.h"
#include "varve/store.h"

namespace varve {
namespace {

constexpr uint32_t kFewestToShare = 8;  // keys of a batch that a helper may execute
constexpr int kSlicesOnWorker = 16;     // of one reply, before others get their turn

}  // namespace

int64_t Session::WorthSharing(bool writers_wait) const {
  if (closed_ || held_ || !has_batch_ || in_flight_ || client_.Restricted() ||
      executor_.continued() || OutputFull() || batch_.reads < kFewestToShare || batch_.writes > 0 ||
      Place(writers_wait) != Placement::kInline) {
    return 0;
  }
  return batch_.reads * server_->read_cost.nanos();
}

void Session::Lend() {
  in_flight_ = true;
  send_from_worker_ = output_.empty() && writable_;
  log_had_failed_ = loop_->log_failed();
}

bool Session::Dispatch(Placement placement) {
  Lend();
  if (loop_->Dispatch(shared_from_this(), placement)) {
    server_->statistics.batches_pooled.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  TakeBack();
  return false;
}

void Session::ExecuteOnWorker() {
  worker_replies_.BeginBatch(executor_.inside_reply());
  worker_broken_ = false;
  for (int slice = 0; slice < kSlicesOnWorker; ++slice) {
    // Nobody will see the replies: what is queued must not hold up the stop.
    if (loop_->aborted()) {
      worker_broken_ = true;
      break;
    }
    worker_progress_ = RunExecutor(&worker_replies_);
    worker_broken_ = executor_.broken();
    if (const absl::Status pushed = PushFromWorker(); !pushed.ok()) {
      // Whoever has seen a part of the replies can't be told by an error in their place, and none
      // of them may leave.
      if (slice > 0 || executor_.continued() || executor_.inside_reply() ||
          !worker_replies_.FailBatch(CommandContext::ErrorText(pushed))) {
        worker_broken_ = true;
        worker_replies_.Clear();
      }
    }
    if (!send_from_worker_ || worker_broken_ || client_.penalty.count() > 0) break;
    bool would_block = false;
    if (!Send(&worker_replies_, server_->store->durable_sequence(), &would_block))
      worker_broken_ = true;
    if (worker_progress_ == BatchExecutor::Progress::kDone || !worker_replies_.empty() ||
        worker_broken_)
      break;
    if (executor_.slice_spent()) break;  // others get their turn
  }
  loop_->Complete(shared_from_this());
}

absl::Status Session::PushFromWorker() {
  if (executor_.submitted()) return server_->store->Push();
  return log_had_failed_ ? absl::OkStatus() : server_->store->PushUnsynced();
}

void Session::OnCompleted() {
  TakeBack();
  if (closed_) return;
  output_.Take(&worker_replies_);
  worker_replies_.ShrinkAbove(server_->options.keep_buffer_bytes);
  if (worker_broken_) client_.close_after_reply = true;
  if (worker_progress_ == BatchExecutor::Progress::kDone || worker_broken_) FinishBatch();
  if (Abandoned()) return Close();
  CountMemory();
  loop_->Schedule(this);
}

}  // namespace varve
