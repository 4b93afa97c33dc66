#include "db/log/log.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "db/log/log_writer.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/steady_condition.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

// Who syncs. A group is what one sync makes durable. It is run by
//   - a log thread, called by Push, for requests that are parked: it goes on while more has
//     arrived;
//   - a thread in WaitUntilDurable, where it may begin a group: a lone writer pays for no change of
//     threads. What arrives meanwhile it leaves to a log thread.
// Where the writer takes direct groups, a second one begins while one is under way, once as much as
// that one took is waiting: smaller ones would gain nothing.
//
// A thread that waits sleeps on the word of its group (the latest one begun, or the next), so that
// one call wakes exactly those whose group is done. Whoever ends a group sees to it that the next
// one begins: nobody waits while none is under way.
class Log::Implementation {
 public:
  Implementation(FileSystem* file_system, const LogOptions& options, SequenceNumber last_sequence)
      : options_(options),
        // Who waits for company doesn't begin a second group.
        most_running_(options.sync_backend == SyncBackend::kDirect &&
                              options.group_max_delay.count() == 0
                          ? static_cast<int>(LogWriter::kMostDirectGroups)
                          : 1),
        writer_(file_system, options, last_sequence),
        group_last_(last_sequence) {}

  ~Implementation() {
    if (!closed_) Close().status().IgnoreError();  // whoever wants to know calls Close
  }

  absl::Status Start(uint64_t file_number) {
    VARVE_RETURN_IF_ERROR(writer_.Start(file_number));
    for (int i = 0; i < most_running_; ++i)
      threads_.emplace_back([this, i] { Run(/*ticks=*/i == 0); });
    return absl::OkStatus();
  }

  LogWriter& writer() { return writer_; }
  const LogWriter& writer() const { return writer_; }

  absl::Status Push();
  absl::Status PushUnsynced();
  absl::Status WaitUntilDurable(SequenceNumber sequence);
  bool TrySync();
  uint64_t AddListener(std::function<void()> listener);
  void RemoveListener(uint64_t token);
  absl::StatusOr<LogEnd> Close();

 private:
  // Something waits that no group has taken.
  bool SyncIsWanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !writer_.failed() && std::max(writer_.last_always(), wanted_) >
                                    std::max(writer_.durable_sequence(), group_last_);
  }
  bool MayBeginGroup() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (log_thread_is_called_) return false;
    return running_ == 0 ||
           (running_ < most_running_ && writer_.appended_sequence() - group_last_ >= group_size_);
  }
  void CallLogThread(SteadyTime gathering_since = SteadyNow())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    log_thread_is_called_ = true;
    gathering_since_ = gathering_since;
    wake_.Signal();
  }
  void EndGatheringIfFull() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (options_.group_max_delay.count() > 0 &&
        writer_.buffered_bytes() >= options_.group_max_bytes)
      wake_.Signal();
  }
  // Runs one group, which the caller may begin, sees to the next one, and tells everybody.
  void RunGroup() ABSL_UNLOCK_FUNCTION(mutex_);
  void WakeGroup(uint32_t group);
  void NotifyListeners();
  void GatherForDelay() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(bool ticks);

  const LogOptions options_;
  const int most_running_;
  LogWriter writer_;

  absl::Mutex mutex_;
  SteadyCondition wake_;                     // the log threads
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // groups under way
  bool log_thread_is_called_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  SequenceNumber wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // somebody waits for it, whatever its mode
  SteadyTime gathering_since_ ABSL_GUARDED_BY(mutex_);
  // The latest group begun: its number, its last sequence as known from its start, and how many it
  // took; highest sequence waited for in the next.
  uint32_t group_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber group_last_ ABSL_GUARDED_BY(mutex_);
  SequenceNumber group_size_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber next_group_wanted_ ABSL_GUARDED_BY(mutex_) = 0;

  // words_[g % kWords]: the latest group of that residue which is done. Of groups that are not,
  // there are fewer.
  static constexpr uint32_t kWords = 4;
  std::atomic<uint32_t> words_[kWords] = {0, uint32_t(1 - kWords), uint32_t(2 - kWords),
                                          uint32_t(3 - kWords)};

  // Held while listeners run, so that a removed listener runs no more.
  absl::Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;

  std::vector<std::thread> threads_;
  bool closed_ = false;
};

absl::Status Log::Implementation::PushUnsynced() {
  // In order of sequence: records that need no sync take the ones before them along.
  const SequenceNumber unsynced = std::max(writer_.last_every_second(), writer_.last_unsynced());
  if (unsynced <= writer_.written_sequence()) return absl::OkStatus();
  absl::Status status = writer_.WriteOut(unsynced);
  if (!status.ok()) NotifyListeners();
  return status;
}

absl::Status Log::Implementation::Push() {
  VARVE_RETURN_IF_ERROR(PushUnsynced());
  if (writer_.last_always() > writer_.durable_sequence()) {
    absl::MutexLock lock(&mutex_);
    if (SyncIsWanted() && MayBeginGroup()) {
      CallLogThread();
    } else {
      EndGatheringIfFull();
    }
  }
  return writer_.status();
}

absl::Status Log::Implementation::WaitUntilDurable(SequenceNumber sequence) {
  if (writer_.durable_sequence() >= sequence) return absl::OkStatus();
  if (sequence > writer_.appended_sequence()) {
    return writer_.failed()
               ? writer_.status()
               : absl::InvalidArgumentError("waiting for an operation that is not in the log");
  }
  mutex_.Lock();
  wanted_ = std::max(wanted_, sequence);
  if (writer_.failed() || writer_.durable_sequence() >= sequence) {
    mutex_.Unlock();
    return writer_.durable_sequence() >= sequence ? absl::OkStatus() : writer_.status();
  }
  const bool is_taken = sequence <= group_last_;
  if (!is_taken && MayBeginGroup() && options_.group_max_delay.count() == 0) {
    RunGroup();
  } else {
    if (!is_taken) MayBeginGroup() ? CallLogThread() : EndGatheringIfFull();
    uint32_t group = group_;
    if (!is_taken) {
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
  return writer_.durable_sequence() >= sequence ? absl::OkStatus() : writer_.status();
}

bool Log::Implementation::TrySync() {
  mutex_.Lock();
  if (!SyncIsWanted() || !MayBeginGroup() || options_.group_max_delay.count() > 0) {
    mutex_.Unlock();
    return false;
  }
  RunGroup();
  return true;
}

void Log::Implementation::RunGroup() {
  const SteadyTime begin = SteadyNow();
  const uint32_t group = ++group_;
  group_size_ = writer_.appended_sequence() - group_last_;
  group_last_ += group_size_;
  next_group_wanted_ = 0;
  ++running_;
  mutex_.Unlock();
  writer_.Sync().IgnoreError();  // status() tells everyone
  WakeGroup(group);
  mutex_.Lock();
  --running_;
  // What arrived between the look at the clock and the write is durable as well; after a failure
  // nobody waits on.
  if (next_group_wanted_ != 0 &&
      (writer_.failed() || next_group_wanted_ <= writer_.durable_sequence())) {
    next_group_wanted_ = 0;
    WakeGroup(++group_);
  }
  if (SyncIsWanted() && MayBeginGroup()) CallLogThread(begin);
  mutex_.Unlock();
  NotifyListeners();
}

void Log::Implementation::WakeGroup(uint32_t group) {
  std::atomic<uint32_t>& word = words_[group % kWords];
  uint32_t done = word.load(std::memory_order_relaxed);
  // Never back: who ran a group may have been held up while others ran the next ones.
  while (static_cast<int32_t>(done - group) < 0 &&
         !word.compare_exchange_weak(done, group, std::memory_order_acq_rel)) {
  }
  word.notify_all();
}

void Log::Implementation::NotifyListeners() {
  absl::ReaderMutexLock lock(&listeners_mutex_);
  // The log's work goes on whatever becomes of those who are told of it.
  for (const auto& [token, listener] : listeners_) TryWithMemory(listener);
}

void Log::Implementation::GatherForDelay() {
  const SteadyTime deadline = gathering_since_ + options_.group_max_delay;
  while (!stopping_ && writer_.buffered_bytes() < options_.group_max_bytes) {
    if (wake_.WaitWithDeadline(&mutex_, deadline)) return;
  }
}

void Log::Implementation::Tick() {
  if (writer_.failed()) return;
  if (writer_.last_every_second() > writer_.durable_sequence()) {
    if (MayBeginGroup()) CallLogThread();
  } else if (writer_.mark_is_behind()) {
    mutex_.Unlock();
    writer_.WriteMark();
    mutex_.Lock();
  }
}

void Log::Implementation::Run(bool ticks) {
  NameThread("varve-log");
  mutex_.Lock();
  while (true) {
    while (!log_thread_is_called_ && !stopping_) {
      if (wake_.WaitWithTimeout(&mutex_, kTick) && ticks && running_ == 0 && !log_thread_is_called_)
        Tick();
    }
    if (!log_thread_is_called_) break;
    if (options_.group_max_delay.count() > 0) GatherForDelay();
    log_thread_is_called_ = false;
    RunGroup();
    mutex_.Lock();
  }
  mutex_.Unlock();
}

uint64_t Log::Implementation::AddListener(std::function<void()> listener) {
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.emplace(next_listener_, std::move(listener));
  return next_listener_++;
}

void Log::Implementation::RemoveListener(uint64_t token) {
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.erase(token);
}

absl::StatusOr<LogEnd> Log::Implementation::Close() {
  if (closed_) return absl::FailedPreconditionError("the log is closed already");
  closed_ = true;
  const absl::Status synced =
      writer_.failed() ? writer_.status() : WaitUntilDurable(writer_.appended_sequence());
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  const LogEnd end = writer_.Stop();
  VARVE_RETURN_IF_ERROR(synced);
  VARVE_RETURN_IF_ERROR(writer_.status());
  return end;
}

// --- The public face -----------------------------------------------------------------------------

Log::Log(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Log::~Log() = default;

absl::StatusOr<std::unique_ptr<Log>> Log::Open(FileSystem* file_system, const LogOptions& options,
                                               uint64_t file_number, SequenceNumber last_sequence) {
  auto implementation = std::make_unique<Implementation>(file_system, options, last_sequence);
  VARVE_RETURN_IF_ERROR(implementation->Start(file_number));
  return std::unique_ptr<Log>(new Log(std::move(implementation)));
}

bool Log::HasRoom(size_t bytes, bool for_deletes) const {
  return implementation_->writer().HasRoom(bytes, for_deletes);
}
absl::Status Log::Prepare(size_t bytes, bool for_deletes) {
  return GuardMemory("making room in the log",
                     [&] { return implementation_->writer().Prepare(bytes, for_deletes); });
}
absl::Status Log::Reserve(size_t bytes, bool for_deletes) {
  return GuardMemory("making room in the log",
                     [&] { return implementation_->writer().Reserve(bytes, for_deletes); });
}
absl::Status Log::Append(std::string_view record, SequenceNumber first, SequenceNumber last,
                         Durability durability, uint32_t* offset_in_block) {
  return implementation_->writer().Append(record, first, last, durability, offset_in_block);
}
absl::Status Log::Push() { return implementation_->Push(); }
absl::Status Log::PushUnsynced() { return implementation_->PushUnsynced(); }

SequenceNumber Log::durable_sequence() const {
  return implementation_->writer().durable_sequence();
}
SequenceNumber Log::written_sequence() const {
  return implementation_->writer().written_sequence();
}
SequenceNumber Log::last_always_sequence() const { return implementation_->writer().last_always(); }
absl::Status Log::status() const { return implementation_->writer().status(); }
absl::Status Log::WaitUntilDurable(SequenceNumber sequence) {
  return implementation_->WaitUntilDurable(sequence);
}
bool Log::TrySync() { return implementation_->TrySync(); }
absl::Status Log::Sync() {
  return implementation_->WaitUntilDurable(implementation_->writer().appended_sequence());
}

uint64_t Log::AddListener(std::function<void()> listener) {
  return implementation_->AddListener(std::move(listener));
}
void Log::RemoveListener(uint64_t token) { implementation_->RemoveListener(token); }

std::vector<LogEnd> Log::Files() const { return implementation_->writer().Files(); }
void Log::Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps) {
  implementation_->writer().ForgetLargeBlocks(sequence);
  TryWithMemory([&] { implementation_->writer().files().Retire(sequence, keeps); });
}
std::vector<LogBlockPlace> Log::LargeBlocks(SequenceNumber first, SequenceNumber last) const {
  return implementation_->writer().LargeBlocks(first, last);
}
void Log::Adopt(std::vector<LogEnd> recovered) {
  implementation_->writer().files().Adopt(std::move(recovered));
}
uint64_t Log::live_bytes() const { return implementation_->writer().live_bytes(); }
LogStatistics Log::statistics() const { return implementation_->writer().statistics(); }

absl::StatusOr<LogEnd> Log::Close() { return implementation_->Close(); }

}  // namespace varve
