#include "db/log.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "db/log_writer.h"
#include "util/memory_guard.h"
#include "util/status.h"
#include "util/steady_condition.h"
#include "util/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);

}  // namespace

// Who syncs. A group is what one sync makes durable. The role of the one who syncs is held by
//   - the log thread, woken by Push, for requests that are parked: it goes on while more has arrived;
//   - a thread in WaitUntilDurable, where nobody else has the role: a lone writer pays for no change of threads. What
//   arrives
//     meanwhile it leaves to the log thread.
// A thread that waits sleeps on the word of its group (the one under way, or the next), so that one call wakes exactly
// those whose group is done. Nobody waits while the role is free.
class Log::Implementation {
 public:
  Implementation(FileSystem* file_system, const LogOptions& options, SequenceNumber last_sequence)
      : options_(options), writer_(file_system, options, last_sequence) {}

  ~Implementation() {
    if (!closed_) Close().status().IgnoreError();  // whoever wants to know calls Close
  }

  absl::Status Start(uint64_t file_number) {
    VARVE_RETURN_IF_ERROR(writer_.Start(file_number));
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  LogWriter& writer() { return writer_; }
  const LogWriter& writer() const { return writer_; }

  absl::Status Push();
  absl::Status PushUnsynced();
  absl::Status WaitUntilDurable(SequenceNumber sequence);
  uint64_t AddListener(std::function<void()> listener);
  void RemoveListener(uint64_t token);
  absl::StatusOr<LogEnd> Close();

 private:
  enum class Role { kFree, kLogThread, kWaiter };

  bool SyncIsWanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !writer_.failed() && std::max(writer_.last_always(), wanted_) > writer_.durable_sequence();
  }
  void GiveToLogThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    role_ = Role::kLogThread;
    gathering_since_ = SteadyNow();
    wake_.Signal();
  }
  // Runs one group; the caller has the role.
  void RunGroup();
  void WakeGroup(uint32_t group);
  void NotifyListeners();
  void GatherForDelay() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  const LogOptions options_;
  LogWriter writer_;

  absl::Mutex mutex_;
  SteadyCondition wake_;  // the log thread
  Role role_ ABSL_GUARDED_BY(mutex_) = Role::kFree;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  SequenceNumber wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // somebody waits for it, whatever its mode
  SteadyTime gathering_since_ ABSL_GUARDED_BY(mutex_);
  // Groups: number and last sequence (known from the start) of the latest one begun; highest sequence waited for in the
  // next.
  uint32_t group_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber group_last_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber next_group_wanted_ ABSL_GUARDED_BY(mutex_) = 0;

  // words_[g % 2]: the latest group of that parity which is done.
  std::atomic<uint32_t> words_[2] = {0, uint32_t(-1)};

  // Held while listeners run, so that a removed listener runs no more.
  absl::Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;

  std::thread thread_;
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
    if (role_ == Role::kFree && SyncIsWanted()) {
      GiveToLogThread();
    } else if (role_ == Role::kLogThread && options_.group_max_delay.count() > 0 &&
               writer_.buffered_bytes() >= options_.group_max_bytes) {
      wake_.Signal();  // it may be waiting for company
    }
  }
  return writer_.status();
}

absl::Status Log::Implementation::WaitUntilDurable(SequenceNumber sequence) {
  if (writer_.durable_sequence() >= sequence) return absl::OkStatus();
  if (sequence > writer_.appended_sequence()) {
    return writer_.failed() ? writer_.status()
                            : absl::InvalidArgumentError("waiting for an operation that is not in the log");
  }
  mutex_.Lock();
  wanted_ = std::max(wanted_, sequence);
  if (!SyncIsWanted()) {
    mutex_.Unlock();
    return writer_.durable_sequence() >= sequence ? absl::OkStatus() : writer_.status();
  }
  if (role_ == Role::kFree && options_.group_max_delay.count() == 0) {
    role_ = Role::kWaiter;
    mutex_.Unlock();
    RunGroup();
    mutex_.Lock();
    role_ = Role::kFree;
    if (SyncIsWanted()) GiveToLogThread();
    mutex_.Unlock();
    NotifyListeners();
  } else {
    if (role_ == Role::kFree) GiveToLogThread();
    uint32_t group = group_;
    if (sequence > group_last_) {
      group = group_ + 1;
      next_group_wanted_ = std::max(next_group_wanted_, sequence);
    }
    mutex_.Unlock();
    std::atomic<uint32_t>& word = words_[group % 2];
    uint32_t done;
    // Differences, as numbers of groups wrap around.
    while (static_cast<int32_t>((done = word.load(std::memory_order_acquire)) - group) < 0) word.wait(done);
  }
  return writer_.durable_sequence() >= sequence ? absl::OkStatus() : writer_.status();
}

void Log::Implementation::RunGroup() {
  {
    absl::MutexLock lock(&mutex_);
    ++group_;
    group_last_ = writer_.appended_sequence();
    next_group_wanted_ = 0;
  }
  writer_.Sync().IgnoreError();  // status() tells everyone
  uint32_t group;
  bool next_is_done;
  {
    absl::MutexLock lock(&mutex_);
    group = group_;
    // What arrived between the look at the clock and the write is durable as well; after a failure nobody waits on.
    next_is_done = next_group_wanted_ != 0 && (writer_.failed() || next_group_wanted_ <= writer_.durable_sequence());
    if (next_is_done) {
      ++group_;
      next_group_wanted_ = 0;
    }
  }
  WakeGroup(group);
  if (next_is_done) WakeGroup(group + 1);
}

void Log::Implementation::WakeGroup(uint32_t group) {
  words_[group % 2].store(group, std::memory_order_release);
  words_[group % 2].notify_all();
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
    GiveToLogThread();
  } else if (writer_.mark_is_behind()) {
    mutex_.Unlock();
    writer_.WriteMark();
    mutex_.Lock();
  }
}

void Log::Implementation::Run() {
  NameThread("varve-log");
  mutex_.Lock();
  while (true) {
    while (role_ != Role::kLogThread && !stopping_) {
      if (wake_.WaitWithTimeout(&mutex_, kTick) && role_ == Role::kFree) Tick();
    }
    if (role_ != Role::kLogThread) break;
    if (options_.group_max_delay.count() > 0) GatherForDelay();
    gathering_since_ = SteadyNow();
    mutex_.Unlock();
    RunGroup();
    NotifyListeners();
    mutex_.Lock();
    if (!SyncIsWanted()) role_ = Role::kFree;
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
  const absl::Status synced = writer_.failed() ? writer_.status() : WaitUntilDurable(writer_.appended_sequence());
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.Signal();
  }
  if (thread_.joinable()) thread_.join();
  const LogEnd end = writer_.Stop();
  VARVE_RETURN_IF_ERROR(synced);
  VARVE_RETURN_IF_ERROR(writer_.status());
  return end;
}

// --- The public face -------------------------------------------------------------------------------------------------

Log::Log(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Log::~Log() = default;

absl::StatusOr<std::unique_ptr<Log>> Log::Open(FileSystem* file_system, const LogOptions& options, uint64_t file_number,
                                               SequenceNumber last_sequence) {
  auto implementation = std::make_unique<Implementation>(file_system, options, last_sequence);
  VARVE_RETURN_IF_ERROR(implementation->Start(file_number));
  return std::unique_ptr<Log>(new Log(std::move(implementation)));
}

bool Log::HasRoom(size_t bytes, bool for_deletes) const {
  return implementation_->writer().HasRoom(bytes, for_deletes);
}
absl::Status Log::Prepare(size_t bytes, bool for_deletes) {
  return GuardMemory("making room in the log", [&] { return implementation_->writer().Prepare(bytes, for_deletes); });
}
absl::Status Log::Reserve(size_t bytes, bool for_deletes) {
  return GuardMemory("making room in the log", [&] { return implementation_->writer().Reserve(bytes, for_deletes); });
}
absl::Status Log::Append(std::string_view record, SequenceNumber first, SequenceNumber last, Durability durability,
                         uint32_t* offset_in_block) {
  return implementation_->writer().Append(record, first, last, durability, offset_in_block);
}
absl::Status Log::Push() { return implementation_->Push(); }
absl::Status Log::PushUnsynced() { return implementation_->PushUnsynced(); }

SequenceNumber Log::durable_sequence() const { return implementation_->writer().durable_sequence(); }
SequenceNumber Log::written_sequence() const { return implementation_->writer().written_sequence(); }
SequenceNumber Log::last_always_sequence() const { return implementation_->writer().last_always(); }
absl::Status Log::status() const { return implementation_->writer().status(); }
absl::Status Log::WaitUntilDurable(SequenceNumber sequence) { return implementation_->WaitUntilDurable(sequence); }
absl::Status Log::Sync() { return implementation_->WaitUntilDurable(implementation_->writer().appended_sequence()); }

uint64_t Log::AddListener(std::function<void()> listener) { return implementation_->AddListener(std::move(listener)); }
void Log::RemoveListener(uint64_t token) { implementation_->RemoveListener(token); }

std::vector<LogEnd> Log::Files() const { return implementation_->writer().Files(); }
void Log::Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps) {
  implementation_->writer().ForgetLargeBlocks(sequence);
  TryWithMemory([&] { implementation_->writer().files().Retire(sequence, keeps); });
}
std::vector<LogBlockPlace> Log::LargeBlocks(SequenceNumber first, SequenceNumber last) const {
  return implementation_->writer().LargeBlocks(first, last);
}
void Log::Adopt(std::vector<LogEnd> recovered) { implementation_->writer().files().Adopt(std::move(recovered)); }
uint64_t Log::live_bytes() const { return implementation_->writer().live_bytes(); }
LogStatistics Log::statistics() const { return implementation_->writer().statistics(); }

absl::StatusOr<LogEnd> Log::Close() { return implementation_->Close(); }

}  // namespace varve
