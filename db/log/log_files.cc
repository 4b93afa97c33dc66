#include "db/log/log_files.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "db/format/log_format.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

// Pauses between attempts to prepare a spare on a full disk: each attempt takes space that others
// may be waiting for.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(200);
constexpr absl::Duration kLastRetry = absl::Milliseconds(1600);
constexpr absl::Duration kSpareTimeout = absl::Seconds(10);
constexpr uint64_t kFirstFileSize = 4u << 20;
constexpr uint64_t kExtension = 4u << 20;  // before one looks whether it is still wanted
// Zeros go to the disk in pieces of this size, so that the syncs of commits never queue behind a
// whole file.
constexpr uint64_t kZeroPiece = 256u << 10;
constexpr absl::Duration kRest = absl::Milliseconds(20);
constexpr int kMostRests = 2;
constexpr double kLead = 0.125;
// Zeros are written in small pieces: the kernel keeps what one write brought in as one large folio,
// and every later small write into it walks all of its blocks. Measured for 150 bytes on ext4: 1.3
// us after pieces of 1 MiB, 0.3 us after these.
constexpr uint64_t kZeroWrite = 16u << 10;
constexpr uint64_t kMinFileSize = 64u << 10;

}  // namespace

LogFiles::LogFiles(FileSystem* file_system, const LogOptions& options)
    : file_system_(file_system),
      options_(options),
      file_size_(LogPageAlign(std::max<uint64_t>(options.file_size, kMinFileSize))),
      next_number_(options.next_file_number) {}

LogFiles::~LogFiles() { Stop(); }

absl::StatusOr<LogFile> LogFiles::Start(uint64_t first_number) {
  if (!next_number_) next_number_ = [next = first_number + 1]() mutable { return next++; };
  VARVE_ASSIGN_OR_RETURN(LogFile first, Prepare(first_number, std::min(file_size_, kFirstFileSize),
                                                "", Haste::kAtOnce));
  size_in_use_.store(first.size, std::memory_order_relaxed);
  thread_ = std::thread([this] { Run(); });
  return first;
}

void LogFiles::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_.store(true);
    changed_.SignalAll();
  }
  thread_.join();
  std::vector<uint64_t> leftovers;
  uint64_t spare = 0;
  {
    absl::MutexLock lock(&mutex_);
    leftovers = std::exchange(reusable_, {});
    if (spare_.file != nullptr) spare = spare_.number;
    spare_ = LogFile();
    spare_size_.store(0);
  }
  RemoveFiles(leftovers);
  if (spare != 0) RemoveFile(spare);
}

absl::Status LogFiles::WaitForSpare() {
  absl::MutexLock lock(&mutex_);
  const SteadyTime deadline = SteadyNow() + kSpareTimeout;
  ++waiting_;
  changed_.SignalAll();
  while (spare_.file == nullptr && spare_status_.ok() && !stopping_.load()) {
    if (changed_.WaitWithDeadline(&mutex_, deadline)) break;
  }
  --waiting_;
  if (spare_.file != nullptr) return absl::OkStatus();
  if (stopping_.load()) return absl::UnavailableError("the log is closing");
  if (!spare_status_.ok()) return UnsharedCopy(spare_status_);
  return absl::ResourceExhaustedError(
      "the next log file is still being prepared; the disk is too slow, try again");
}

absl::Status LogFiles::GrowSpare(uint64_t size) {
  VARVE_RETURN_IF_ERROR(WaitForSpare());
  uint64_t number, begin;
  {
    absl::MutexLock lock(&mutex_);
    while (growing_ != 0) changed_.Wait(&mutex_);
    if (spare_.file == nullptr || spare_.size >= size) return absl::OkStatus();
    growing_ = number = spare_.number;
    begin = spare_.size;
  }
  const absl::StatusOr<bool> extended =
      GuardMemory("growing a log file", [&] { return ExtendSpare(number, begin, size); });
  absl::MutexLock lock(&mutex_);
  growing_ = 0;
  changed_.SignalAll();
  if (spare_.file == nullptr || spare_.number != number) return absl::OkStatus();
  if (extended.ok() && *extended) {
    spare_.size = size;
    spare_size_.store(size, std::memory_order_release);
  }
  return extended.status();
}

// The spare may come into use meanwhile: nobody counts on what lies behind `begin`, the least size
// that a file keeps. A descriptor of its own, since each learns only once of an error: the log's
// must not miss one.
absl::StatusOr<bool> LogFiles::ExtendSpare(uint64_t number, uint64_t begin, uint64_t end) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system_->OpenForWrite(Path(LogFileName(number)), /*create=*/false));
  absl::Status status;
  bool is_spare = true;
  for (uint64_t offset = begin; offset < end && status.ok() && is_spare; offset += kExtension) {
    status = Extend(file.get(), offset, std::min(offset + kExtension, end), Haste::kAtOnce);
    absl::MutexLock lock(&mutex_);
    is_spare = spare_.file != nullptr && spare_.number == number;
  }
  if (status.ok() && is_spare) return true;
  // Whoever uses it keeps what is before, and the disk may be full.
  VARVE_RETURN_IF_ERROR(file->Truncate(begin));
  VARVE_RETURN_IF_ERROR(status);
  return false;
}

absl::StatusOr<LogFile> LogFiles::Advance(const LogEnd& end) {
  absl::MutexLock lock(&mutex_);
  if (spare_.file == nullptr) return absl::NotFoundError("no log file was prepared");
  completed_.push_back({end, /*reusable=*/true});  // its memory came with the spare
  spare_size_.store(0, std::memory_order_release);
  changed_.SignalAll();
  size_in_use_.store(spare_.size, std::memory_order_relaxed);
  NoteUsed(0);
  return std::exchange(spare_, LogFile());
}

void LogFiles::Adopt(std::vector<LogEnd> recovered) {
  absl::MutexLock lock(&mutex_);
  std::vector<CompletedFile> files;
  for (const LogEnd& end : recovered) files.push_back({end, /*reusable=*/false});
  files.reserve(files.size() + completed_.size() + 1);
  files.insert(files.end(), completed_.begin(), completed_.end());
  completed_ = std::move(files);
}

void LogFiles::Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps) {
  absl::MutexLock lock(&mutex_);
  // Oldest first and without gaps, so that what stays is always the log's end.
  size_t count = 0;
  // A spare that came into use while it grew (ExtendSpare) stays the log's until that is over.
  while (count < completed_.size() && completed_[count].end.last_sequence <= sequence &&
         completed_[count].end.file_number != growing_) {
    ++count;
  }
  if (count == 0) return;
  ReserveMore(&reusable_, count);
  ReserveMore(&to_remove_, count);
  for (size_t i = 0; i < count; ++i) {
    if (keeps(completed_[i].end)) continue;
    const bool recycle = completed_[i].reusable && reusable_.size() < MostReusable();
    (recycle ? reusable_ : to_remove_).push_back(completed_[i].end.file_number);
  }
  completed_.erase(completed_.begin(), completed_.begin() + static_cast<ptrdiff_t>(count));
  changed_.SignalAll();
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

absl::Status LogFiles::WriteZeros(File* file, uint64_t begin, uint64_t end, Haste haste) {
  const std::string zeros(std::min(end - begin, kZeroWrite), '\0');
  for (uint64_t piece = begin; begin < end;) {
    if (stopping_.load(std::memory_order_relaxed))
      return absl::UnavailableError("the log is closing");
    const size_t size = std::min<uint64_t>(end - begin, zeros.size());
    VARVE_RETURN_IF_ERROR(file->Write(begin, std::string_view(zeros).substr(0, size)));
    begin += size;
    if (begin - piece < kZeroPiece) continue;
    file->StartWriteback(piece, begin - piece);
    piece = begin;
    if (haste == Haste::kInTime && begin < end) RestBetweenZeros(begin, end);
  }
  return file->Sync();
}

absl::Status LogFiles::Extend(File* file, uint64_t begin, uint64_t end, Haste haste) {
  if (!allocates_.load(std::memory_order_relaxed)) return WriteZeros(file, begin, end, haste);
  VARVE_RETURN_IF_ERROR(file->Allocate(begin, end));
  return file->Sync();
}

void LogFiles::RestBetweenZeros(uint64_t done, uint64_t size) {
  const double zeroed = static_cast<double>(done) / static_cast<double>(size);
  for (int rests = 0; rests < kMostRests; ++rests) {
    const double used = static_cast<double>(used_.load(std::memory_order_relaxed)) /
                        static_cast<double>(size_in_use_.load(std::memory_order_relaxed));
    if (zeroed < used + kLead) return;
    const SteadyTime until = SteadyNow() + kRest;
    absl::MutexLock lock(&mutex_);
    do {
      if (stopping_.load() || waiting_ > 0) return;
    } while (!changed_.WaitWithDeadline(&mutex_, until));
  }
}

absl::StatusOr<std::unique_ptr<File>> LogFiles::PrepareContent(uint64_t number,
                                                               uint64_t wanted_size,
                                                               const std::string& temporary,
                                                               const std::string& recycled_path,
                                                               Haste haste) {
  const std::string header = EncodeLogHeaderPage(number, options_.store_id, wanted_size);
  const bool recycle = !recycled_path.empty();
  if (recycle) {
    // The old name is gone for good before the header says another number.
    VARVE_RETURN_IF_ERROR(file_system_->Rename(recycled_path, temporary));
    VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(options_.directory));
  }
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                         file_system_->OpenForWrite(temporary, /*create=*/!recycle));
  VARVE_RETURN_IF_ERROR(file->Write(0, header));
  uint64_t size = header.size();
  if (recycle) {
    VARVE_ASSIGN_OR_RETURN(size, file->Size());
    if (size > wanted_size) {
      VARVE_RETURN_IF_ERROR(file->Truncate(wanted_size));
      size = wanted_size;
    }
  }
  if (size < wanted_size) {
    VARVE_RETURN_IF_ERROR(Extend(file.get(), size, wanted_size, haste));
  } else {
    VARVE_RETURN_IF_ERROR(file->Sync());
  }
  return file;
}

absl::StatusOr<LogFile> LogFiles::Prepare(uint64_t number, uint64_t size,
                                          const std::string& recycled_path, Haste haste) {
  const std::string temporary = Path(LogTemporaryName(number));
  const std::string path = Path(LogFileName(number));
  absl::Status status = PrepareContent(number, size, temporary, recycled_path, haste).status();
  if (status.ok()) status = file_system_->Rename(temporary, path);
  if (!status.ok()) {
    // What was begun only takes up space that may be missing; whether that fails too changes
    // nothing.
    file_system_->Remove(temporary).IgnoreError();
    return status;
  }
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(options_.directory));
  // Opened anew, so that its errors name the file by its final name.
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                         file_system_->OpenForWrite(path, /*create=*/false));
  return LogFile{number, size, !recycled_path.empty(), std::move(file)};
}

void LogFiles::Run() {
  NameThread("varve-log-files");
  absl::Duration retry = kFirstRetry;
  mutex_.Lock();
  while (!stopping_.load()) {
    if (!to_remove_.empty()) {
      const std::vector<uint64_t> numbers = std::exchange(to_remove_, {});
      mutex_.Unlock();
      RemoveFiles(numbers);
      mutex_.Lock();
    } else if (spare_.file == nullptr) {
      mutex_.Unlock();
      absl::Status prepared =
          GuardMemory("preparing a log file", [this] { return PrepareSpare(); });
      mutex_.Lock();
      spare_status_ = std::move(prepared);
      changed_.SignalAll();
      if (spare_status_.ok()) {
        retry = kFirstRetry;
      } else if (!stopping_.load()) {
        changed_.WaitWithTimeout(&mutex_, retry);
        retry = std::min(2 * retry, kLastRetry);
      }
    } else {
      changed_.Wait(&mutex_);
    }
  }
  const std::vector<uint64_t> numbers = std::exchange(to_remove_, {});
  mutex_.Unlock();
  RemoveFiles(numbers);
}

absl::Status LogFiles::PrepareSpare() {
  if (spare_number_ == 0) spare_number_ = next_number_();
  std::string recycled_path;
  {
    absl::MutexLock lock(&mutex_);
    // Where there is no room for a new one an old one is the way on.
    if (!reusable_.empty() && (recycles_.load() || !spare_status_.ok())) {
      recycled_path = Path(LogFileName(reusable_.front()));
      reusable_.erase(reusable_.begin());
    }
  }
  const uint64_t size = std::min(file_size_, 2 * size_in_use_.load(std::memory_order_relaxed));
  absl::StatusOr<LogFile> prepared = Prepare(spare_number_, size, recycled_path, Haste::kInTime);
  VARVE_RETURN_IF_ERROR(prepared.status());
  absl::MutexLock lock(&mutex_);
  ReserveMore(&completed_, 1);
  ReserveMore(&to_remove_, reusable_.size());
  for (; reusable_.size() > MostReusable(); reusable_.pop_back())
    to_remove_.push_back(reusable_.back());
  spare_number_ = 0;
  if (!recycled_path.empty()) recycled_.fetch_add(1, std::memory_order_relaxed);
  spare_ = *std::move(prepared);
  spare_size_.store(spare_.size, std::memory_order_release);
  return absl::OkStatus();
}

// A file that cannot be removed is found again, and found obsolete, by the next recovery.
void LogFiles::RemoveFile(uint64_t number) {
  TryWithMemory([&] { file_system_->Remove(Path(LogFileName(number))).IgnoreError(); });
}

void LogFiles::RemoveFiles(const std::vector<uint64_t>& numbers) {
  for (const uint64_t number : numbers) RemoveFile(number);
}

}  // namespace varve
