#include "db/log/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "db/format/log_format.h"
#include "db/log/log_shrink.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Pauses between attempts to prepare a file on a full disk: each attempt takes space that others
// may be waiting for.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(200);
constexpr absl::Duration kLastRetry = absl::Milliseconds(1600);
constexpr absl::Duration kLongestWait = absl::Seconds(10);
constexpr uint64_t kFirstFileSize = LogFiles::kSizeAtRest;
constexpr uint64_t kExtension = 4u << 20;  // before one looks whether it is still wanted
// The next file may rest while it is this part further than the one in use.
constexpr double kLead = 0.125;
constexpr uint64_t kMinFileSize = 64u << 10;

}  // namespace

LogFiles::LogFiles(FileSystem* file_system, const LogOptions& options, FileThread* thread)
    : file_system_(file_system),
      options_(options),
      file_size_(LogPageAlign(std::max<uint64_t>(options.file_size, kMinFileSize))),
      thread_(thread),
      next_number_(options.next_file_number),
      retry_(kFirstRetry) {
  thread_->Add(this);
}

LogFiles::~LogFiles() { Stop(); }

std::string LogFiles::Path(uint64_t number) const {
  return options_.directory + "/" + LogFileName(number);
}

absl::StatusOr<LogFile> LogFiles::Start(uint64_t first_number) {
  if (!next_number_) next_number_ = [next = first_number + 1]() mutable { return next++; };
  LogFileMaker maker(file_system_, options_,
                     {.number = first_number, .size = std::min(file_size_, kFirstFileSize)});
  for (bool is_complete = false; !is_complete;) {
    VARVE_ASSIGN_OR_RETURN(is_complete, maker.Step());
  }
  LogFile first = maker.Take();
  size_in_use_.store(first.size, std::memory_order_relaxed);
  thread_->Wake(this);
  return first;
}

void LogFiles::Stop(const LogEnd* last) {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_->Remove(this);
  maker_.reset();
  std::vector<uint64_t> leftovers;
  LogFile next;
  {
    absl::MutexLock lock(&mutex_);
    leftovers.swap(reusable_);
    next = std::exchange(next_, LogFile());
    next_size_.store(0);
  }
  // The lock is not held over the removals, because callers that ask for figures take it.
  if (next.file != nullptr) RemoveNumber(next.number);
  RemoveRetired();
  for (const uint64_t number : leftovers) RemoveNumber(number);
  if (last == nullptr) return;
  // A file that can't be shrunk is as good, only larger.
  GuardMemory("shrinking the log", [&] {
    return ShrinkLogFile(file_system_, options_, *last);
  }).IgnoreError();
}

// --- The next file, for the log ------------------------------------------------------------------

absl::Status LogFiles::PrepareNext(uint64_t size) {
  const absl::Status status = next_size() > 0 ? GrowNext(size) : WaitForNext();
  if (status.ok() || absl::IsUnavailable(status)) return status;
  // Whatever keeps the file from being made: nothing was promised in it, and the next try makes it
  // anew.
  return StatusInWords(absl::StatusCode::kResourceExhausted, [&] {
    return fmt::format(
        "no room left in the log, and no file to go on with; making one is tried again, and writes "
        "resume when it is there: {}",
        WordsOf(status));
  });
}

absl::Status LogFiles::WaitForNext() {
  absl::MutexLock lock(&mutex_);
  const SteadyTime deadline = SteadyNow() + kLongestWait;
  ++waiting_;
  thread_->Wake(this);
  while (next_.file == nullptr && next_status_.ok() && !stopping_) {
    if (changed_.WaitWithDeadline(&mutex_, deadline)) break;
  }
  --waiting_;
  VARVE_ASSERT(waiting_ >= 0);
  if (next_.file != nullptr) return absl::OkStatus();
  if (stopping_) return absl::UnavailableError("the log is closing");
  if (!next_status_.ok()) return UnsharedCopy(next_status_);
  return absl::ResourceExhaustedError(
      "the next log file is still being prepared; the disk is too slow, try again");
}

absl::Status LogFiles::GrowNext(uint64_t size) {
  VARVE_RETURN_IF_ERROR(WaitForNext());
  const uint64_t wanted = LogPageAlign(size);
  uint64_t number, begin;
  {
    absl::MutexLock lock(&mutex_);
    while (growing_ != 0) changed_.Wait(&mutex_);
    if (next_.file == nullptr || next_.size >= wanted) return absl::OkStatus();
    growing_ = number = next_.number;
    begin = next_.size;
  }
  const absl::StatusOr<bool> extended =
      GuardMemory("growing a log file", [&] { return Extend(number, begin, wanted); });
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(growing_ == number);
  growing_ = 0;
  changed_.SignalAll();
  if (next_.file == nullptr || next_.number != number) return absl::OkStatus();
  if (extended.ok() && *extended) {
    VARVE_ASSERT(next_.size < wanted);
    next_.size = wanted;
    next_size_.store(wanted, std::memory_order_release);
  }
  return extended.status();
}

// The file may come into use meanwhile: nobody counts on what lies behind `begin`, the least size
// that a file keeps. A descriptor of its own, since each learns only once of an error: the log's
// must not miss one.
absl::StatusOr<bool> LogFiles::Extend(uint64_t number, uint64_t begin, uint64_t end) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system_->OpenForWrite(Path(number), /*create=*/false));
  absl::Status status;
  bool is_next = true;
  for (uint64_t offset = begin; offset < end && status.ok() && is_next; offset += kExtension) {
    // A record that large is a large value, which segments keep: zeros would not pay.
    status = file->Allocate(offset, std::min(offset + kExtension, end));
    if (status.ok()) status = file->Sync();
    absl::MutexLock lock(&mutex_);
    is_next = next_.file != nullptr && next_.number == number && !stopping_;
  }
  if (status.ok() && is_next) return true;
  // The log may use the file up to `begin`; the rest is given back, as the disk may be full.
  VARVE_RETURN_IF_ERROR(file->Truncate(begin));
  VARVE_RETURN_IF_ERROR(status);
  return false;
}

absl::StatusOr<LogFile> LogFiles::Advance(const LogEnd& end, bool gains_by_zeros) {
  absl::MutexLock lock(&mutex_);
  if (next_.file == nullptr) return absl::NotFoundError("no log file was prepared");
  VARVE_ASSERT(completed_.empty() || completed_.back().end.last_sequence <= end.last_sequence);
  VARVE_ASSERT(completed_.size() < completed_.capacity());  // its memory came with the next file
  completed_.push_back({end, /*reusable=*/true});
  rules_.allocates = !gains_by_zeros;
  const bool small_comes = rules_.shedding == Shedding::kAsked && next_.size <= kSizeAtRest;
  if (small_comes) {
    rules_.shedding = Shedding::kSmallInUse;
  } else if (rules_.shedding == Shedding::kSmallInUse) {
    rules_.shedding = Shedding::kNo;
  }
  next_size_.store(0, std::memory_order_release);
  size_in_use_.store(next_.size, std::memory_order_relaxed);
  NoteUsed(0);
  thread_->Wake(this);
  return std::exchange(next_, LogFile());
}

// --- Files before the one in use -----------------------------------------------------------------

void LogFiles::Adopt(std::vector<LogEnd> recovered) {
  absl::MutexLock lock(&mutex_);
  std::vector<CompletedFile> files;
  files.reserve(recovered.size() + completed_.size() + 1);
  for (const LogEnd& end : recovered) files.push_back({end, /*reusable=*/false});
  files.insert(files.end(), completed_.begin(), completed_.end());
  completed_ = std::move(files);
}

void LogFiles::Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps) {
  absl::MutexLock lock(&mutex_);
  // Oldest first and without gaps, so that what stays is always the log's end.
  size_t count = 0;
  // A file that came into use while it grew (Extend) stays the log's until that is over.
  while (count < completed_.size() && completed_[count].end.last_sequence <= sequence &&
         completed_[count].end.file_number != growing_) {
    ++count;
  }
  if (count == 0) return;
  ReserveMore(&reusable_, count);
  ReserveMore(&to_remove_, count);
  for (size_t i = 0; i < count; ++i) {
    if (keeps(completed_[i].end)) continue;
    const bool recycle = rules_.recycles && rules_.shedding == Shedding::kNo &&
                         completed_[i].reusable && reusable_.size() < kMostReusable;
    (recycle ? reusable_ : to_remove_).push_back(completed_[i].end.file_number);
  }
  completed_.erase(completed_.begin(), completed_.begin() + static_cast<ptrdiff_t>(count));
  VARVE_ASSERT(reusable_.size() <= kMostReusable);
  thread_->Wake(this);
}

void LogFiles::SetRecycling(bool recycles) {
  absl::MutexLock lock(&mutex_);
  if (!recycles && !reusable_.empty()) {
    ReserveMore(&to_remove_, reusable_.size());
    to_remove_.insert(to_remove_.end(), reusable_.begin(), reusable_.end());
    reusable_.clear();
  }
  rules_.recycles = recycles;
  thread_->Wake(this);
}

bool LogFiles::Shed() {
  absl::MutexLock lock(&mutex_);
  if (!rules_.recycles || lacks_space()) return false;
  ReserveMore(&to_remove_, reusable_.size());
  to_remove_.insert(to_remove_.end(), reusable_.begin(), reusable_.end());
  reusable_.clear();
  rules_.shedding = Shedding::kAsked;
  thread_->Wake(this);
  return true;
}

uint64_t LogFiles::disk_bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes =
      size_in_use_.load(std::memory_order_relaxed) + next_.size + reusable_.size() * file_size_;
  for (const CompletedFile& file : completed_) bytes += file.end.offset;
  return bytes;
}

std::vector<LogEnd> LogFiles::Completed() const {
  absl::MutexLock lock(&mutex_);
  std::vector<LogEnd> ends;
  ends.reserve(completed_.size() + 1);
  for (const CompletedFile& file : completed_) ends.push_back(file.end);
  return ends;
}

uint64_t LogFiles::completed_bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const CompletedFile& file : completed_) bytes += file.end.offset;
  return bytes;
}

// --- On the file thread --------------------------------------------------------------------------

SteadyTime LogFiles::Step() noexcept {
  if (RemoveRetired()) return SteadyNow();
  if (maker_ == nullptr) {
    const absl::Status begun = GuardMemory("preparing a log file", [this] { return BeginNext(); });
    if (!begun.ok()) return RetryAfter(begun);
    if (maker_ == nullptr) return kEndOfTime;  // there is a next file, or a call of Wake() follows
  }
  const absl::StatusOr<bool> is_complete =
      GuardMemory("preparing a log file", [this] { return maker_->Step(); });
  if (is_complete.ok() && !*is_complete) return kPacer.NextStep(IsAwaited());
  absl::Status ended = is_complete.status();
  if (ended.ok()) ended = GuardMemory("preparing a log file", [this] { return EndNext(); });
  maker_.reset();
  if (!ended.ok()) return RetryAfter(std::move(ended));
  return next_size() != 0 ? kEndOfTime : SteadyNow();
}

// A file that cannot be removed is found again, and found obsolete, by the next recovery.
void LogFiles::RemoveNumber(uint64_t number) noexcept {
  TryWithMemory([&] { RemoveFile(file_system_, Path(number)); });
}

bool LogFiles::RemoveRetired() {
  std::vector<uint64_t> numbers;
  {
    absl::MutexLock lock(&mutex_);
    numbers.swap(to_remove_);
  }
  for (const uint64_t number : numbers) RemoveNumber(number);
  return !numbers.empty();
}

absl::Status LogFiles::BeginNext() {
  VARVE_ASSERT(maker_ == nullptr);
  LogFileMaker::Plan plan;
  uint64_t recycled = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (next_.file != nullptr || stopping_) return absl::OkStatus();
    plan.allocates = rules_.allocates;
    if (!reusable_.empty()) recycled = reusable_.front();
    plan.size = rules_.shedding == Shedding::kAsked
                    ? kSizeAtRest
                    : 2 * size_in_use_.load(std::memory_order_relaxed);
  }
  if (taken_number_ == 0) taken_number_ = next_number_();
  plan.number = taken_number_;
  plan.size = std::min(file_size_, plan.size);
  if (recycled != 0) plan.recycled_path = Path(recycled);
  maker_ = std::make_unique<LogFileMaker>(file_system_, options_, std::move(plan));
  if (recycled == 0) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (reusable_.empty() || reusable_.front() != recycled) {  // SetRecycling() came between
    maker_.reset();
    return absl::OkStatus();
  }
  reusable_.erase(reusable_.begin());
  return absl::OkStatus();
}

absl::Status LogFiles::EndNext() {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(next_.file == nullptr);
  if (!rules_.recycles && maker_->recycles()) return absl::OkStatus();
  // Shed() came between.
  if (rules_.shedding == Shedding::kAsked && waiting_ == 0 && maker_->size() > kSizeAtRest)
    return absl::OkStatus();
  ReserveMore(&completed_, 1);
  next_ = maker_->Take();
  VARVE_ASSERT(next_.number == taken_number_);
  taken_number_ = 0;
  if (next_.is_recycled) recycled_.fetch_add(1, std::memory_order_relaxed);
  next_size_.store(next_.size, std::memory_order_release);
  next_status_ = absl::OkStatus();
  lacks_space_.store(false, std::memory_order_relaxed);
  retry_ = kFirstRetry;
  changed_.SignalAll();
  return absl::OkStatus();
}

SteadyTime LogFiles::RetryAfter(absl::Status failed) noexcept {
  VARVE_ASSERT(!failed.ok() && maker_ == nullptr);
  const SteadyTime again = SteadyNow() + retry_;
  retry_ = std::min(2 * retry_, kLastRetry);
  absl::MutexLock lock(&mutex_);
  lacks_space_.store(absl::IsResourceExhausted(failed), std::memory_order_relaxed);
  next_status_ = std::move(failed);
  changed_.SignalAll();
  return again;
}

bool LogFiles::IsAwaited() const {
  const double used = static_cast<double>(used_.load(std::memory_order_relaxed)) /
                      static_cast<double>(size_in_use_.load(std::memory_order_relaxed));
  if (maker_->part_done() < used + kLead) return true;
  absl::MutexLock lock(&mutex_);
  return waiting_ > 0;
}

}  // namespace varve
