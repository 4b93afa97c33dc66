#include "db/log/group_commit.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "util/base/assert.h"
#include "util/os/disk_wait.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

GroupCommit::GroupCommit(const LogOptions& options, GroupWriter* writer, LogProgress* progress,
                         std::function<void()> on_progress)
    : options_(options),
      writer_(writer),
      progress_(progress),
      on_progress_(std::move(on_progress)),
      // A log that delays its groups runs one at a time.
      most_running_(options.group_max_delay.count() == 0 ? writer->most_at_once() : 1),
      group_last_(progress->durable()) {
  VARVE_ASSERT(most_running_ > 0 && most_running_ < static_cast<int>(kWords));
}

void GroupCommit::Start() {
  VARVE_ASSERT(threads_.empty());
  threads_.reserve(static_cast<size_t>(most_running_));
  for (int i = 0; i < most_running_; ++i)
    threads_.emplace_back([this, i] { Run(/*ticks=*/i == 0); });
}

void GroupCommit::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool GroupCommit::SyncIsWantedLocked() const {
  mutex_.AssertHeld();
  return !progress_->failed() && std::max(progress_->last(Durability::kAlways), wanted_) >
                                     std::max(progress_->durable(), group_last_);
}

bool GroupCommit::MayBeginGroupLocked() const {
  mutex_.AssertHeld();
  if (log_thread_is_called_) return false;
  return running_ == 0 ||
         (running_ < most_running_ && progress_->appended() - group_last_ >= group_size_);
}

void GroupCommit::CallLogThreadLocked(SteadyTime gathering_since) {
  VARVE_ASSERT(!log_thread_is_called_);
  log_thread_is_called_ = true;
  gathering_since_ = gathering_since;
  wake_.Signal();
}

void GroupCommit::EndGatheringIfFullLocked() {
  mutex_.AssertHeld();
  if (options_.group_max_delay.count() > 0 &&
      progress_->buffered_bytes() >= options_.group_max_bytes)
    wake_.Signal();
}

void GroupCommit::Push() {
  if (progress_->last(Durability::kAlways) <= progress_->durable()) return;
  absl::MutexLock lock(&mutex_);
  if (SyncIsWantedLocked() && MayBeginGroupLocked()) {
    CallLogThreadLocked();
  } else {
    EndGatheringIfFullLocked();
  }
}

absl::Status GroupCommit::WaitUntilDurable(SequenceNumber sequence) {
  if (progress_->durable() >= sequence) return absl::OkStatus();
  if (sequence > progress_->appended()) {
    return progress_->failed()
               ? progress_->status()
               : absl::InvalidArgumentError("waiting for an operation that is not in the log");
  }
  mutex_.Lock();
  wanted_ = std::max(wanted_, sequence);
  if (progress_->failed() || progress_->durable() >= sequence) {
    mutex_.Unlock();
  } else if (sequence > group_last_ && MayBeginGroupLocked() &&
             options_.group_max_delay.count() == 0) {
    RunGroup();
  } else {
    AwaitGroup(sequence);
  }
  return progress_->durable() >= sequence ? absl::OkStatus() : progress_->status();
}

void GroupCommit::AwaitGroup(SequenceNumber sequence) {
  VARVE_ASSERT(sequence <= progress_->appended());
  uint32_t group = group_;
  if (sequence > group_last_) {
    MayBeginGroupLocked() ? CallLogThreadLocked() : EndGatheringIfFullLocked();
    group = group_ + 1;
    next_group_wanted_ = std::max(next_group_wanted_, sequence);
  }
  mutex_.Unlock();
  std::atomic<uint32_t>& word = words_[group % kWords];
  uint32_t done;
  // Differences, as numbers of groups wrap around.
  while (static_cast<int32_t>((done = word.load(std::memory_order_acquire)) - group) < 0)
    word.wait(done);
}

bool GroupCommit::TrySync() {
  mutex_.Lock();
  if (!SyncIsWantedLocked() || !MayBeginGroupLocked() || options_.group_max_delay.count() > 0) {
    mutex_.Unlock();
    return false;
  }
  RunGroup();
  return true;
}

void GroupCommit::RunGroup() {
  const SteadyTime begin = SteadyNow();
  const uint32_t group = ++group_;
  const SequenceNumber last = progress_->appended();
  VARVE_ASSERT(last >= group_last_);
  group_size_ = last - group_last_;
  group_last_ = last;
  next_group_wanted_ = 0;
  ++running_;
  VARVE_ASSERT(running_ <= most_running_);
  progress_->sync_times().Began(begin, running_);
  mutex_.Unlock();
  {
    const DiskWait wait;
    writer_->WriteGroup().IgnoreError();  // status() tells everyone
  }
  const SteadyTime end = SteadyNow();
  WakeGroup(group);
  mutex_.Lock();
  --running_;
  VARVE_ASSERT(running_ >= 0);
  progress_->sync_times().Ended(begin, end, running_);
  // What arrived between the look at the clock and the write is durable as well; after a failure
  // nobody waits on.
  if (next_group_wanted_ != 0 &&
      (progress_->failed() || next_group_wanted_ <= progress_->durable())) {
    next_group_wanted_ = 0;
    WakeGroup(++group_);
  }
  if (SyncIsWantedLocked() && MayBeginGroupLocked()) CallLogThreadLocked(begin);
  mutex_.Unlock();
  on_progress_();
}

void GroupCommit::WakeGroup(uint32_t group) {
  std::atomic<uint32_t>& word = words_[group % kWords];
  uint32_t done = word.load(std::memory_order_relaxed);
  // Never back: who ran a group may have been held up while others ran the next ones.
  while (static_cast<int32_t>(done - group) < 0 &&
         !word.compare_exchange_weak(done, group, std::memory_order_acq_rel)) {
  }
  word.notify_all();
}

void GroupCommit::GatherLocked() {
  mutex_.AssertHeld();
  const SteadyTime deadline = gathering_since_ + options_.group_max_delay;
  while (!stopping_ && progress_->buffered_bytes() < options_.group_max_bytes) {
    if (wake_.WaitWithDeadline(&mutex_, deadline)) return;
  }
}

void GroupCommit::Tick() {
  mutex_.AssertHeld();
  if (progress_->failed()) return;
  if (progress_->last(Durability::kEverySecond) > progress_->durable()) {
    if (MayBeginGroupLocked()) CallLogThreadLocked();
  } else if (progress_->mark_is_behind()) {
    mutex_.Unlock();
    writer_->WriteMark();
    mutex_.Lock();
  }
}

void GroupCommit::Run(bool ticks) {
  NameThread("varve-log");
  mutex_.Lock();
  while (true) {
    while (!log_thread_is_called_ && !stopping_) {
      if (wake_.WaitWithTimeout(&mutex_, kTick) && ticks && running_ == 0 && !log_thread_is_called_)
        Tick();
    }
    if (!log_thread_is_called_) break;
    if (options_.group_max_delay.count() > 0) GatherLocked();
    log_thread_is_called_ = false;
    RunGroup();
    mutex_.Lock();
  }
  mutex_.Unlock();
}

}  // namespace varve
