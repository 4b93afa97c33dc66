#include "db/log/log.h"

#include <algorithm>
#include <utility>

#include "db/format/log_format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// In order of sequence: records that need no sync take the ones before them along.
SequenceNumber LastUnsynced(const LogProgress& progress) {
  return std::max(progress.last(Durability::kEverySecond), progress.last(Durability::kNone));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Log>> Log::Open(FileSystem* file_system, const LogOptions& options,
                                               uint64_t file_number, SequenceNumber last_sequence) {
  std::unique_ptr<Log> log(new Log(file_system, options, last_sequence));
  VARVE_RETURN_IF_ERROR(log->Start(file_number));
  return log;
}

Log::Log(FileSystem* file_system, const LogOptions& options, SequenceNumber last_sequence)
    : own_file_thread_(options.file_thread == nullptr ? std::make_unique<FileThread>() : nullptr),
      progress_(last_sequence),
      files_(file_system, options,
             options.file_thread == nullptr ? own_file_thread_.get() : options.file_thread),
      writer_(options, &files_, &progress_),
      group_writer_(NewGroupWriter(options.sync_backend, &writer_, &progress_)),
      group_commit_(std::make_unique<GroupCommit>(options, group_writer_.get(), &progress_,
                                                  [this] { NotifyListeners(); })) {}

Log::~Log() {
  if (!closed_) Close().status().IgnoreError();  // a caller that wants the status calls Close()
}

absl::Status Log::Start(uint64_t file_number) {
  VARVE_RETURN_IF_ERROR(writer_.Start(file_number));
  group_commit_->Start();
  return absl::OkStatus();
}

absl::Status Log::Prepare(size_t bytes, bool for_deletes) {
  return GuardMemory("making room in the log", [&] { return writer_.Prepare(bytes, for_deletes); });
}

absl::Status Log::Reserve(size_t bytes, bool for_deletes) {
  return GuardMemory("making room in the log", [&] { return writer_.Reserve(bytes, for_deletes); });
}

absl::Status Log::PrepareToLeaveFile() {
  files_.SetRecycling(false);
  VARVE_RETURN_IF_ERROR(Sync());
  return files_.PrepareNext(kLogPageSize);
}

bool Log::ShedFiles() {
  bool sheds = false;
  TryWithMemory([&] { sheds = files_.Shed(); });
  return sheds;
}

absl::Status Log::PushUnsynced() { return WriteOut(LastUnsynced(progress_)); }

absl::Status Log::PushUpTo(SequenceNumber sequence) {
  VARVE_RETURN_IF_ERROR(WriteOut(sequence));
  group_commit_->Push();
  return progress_.status();
}

absl::Status Log::WriteOut(SequenceNumber sequence) {
  if (sequence <= progress_.written()) return absl::OkStatus();
  absl::Status status = writer_.WriteOut(sequence);
  if (!status.ok()) NotifyListeners();
  return status;
}

absl::Status Log::Push() { return PushUpTo(LastUnsynced(progress_)); }

uint64_t Log::AddListener(std::function<void()> listener) {
  VARVE_ASSERT(listener != nullptr);
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.emplace(next_listener_, std::move(listener));
  return next_listener_++;
}

void Log::RemoveListener(uint64_t token) {
  absl::MutexLock lock(&listeners_mutex_);
  VARVE_ASSERT(token < next_listener_);
  listeners_.erase(token);
}

void Log::NotifyListeners() {
  absl::ReaderMutexLock lock(&listeners_mutex_);
  // The log's work goes on whatever becomes of those who are told of it.
  for (const auto& [token, listener] : listeners_) TryWithMemory(listener);
}

std::vector<LogEnd> Log::Files() const {
  const LogEnd end = writer_.end();
  std::vector<LogEnd> ends = files_.Completed();
  // The file in use may have been completed in between.
  std::erase_if(ends, [&end](const LogEnd& file) { return file.file_number == end.file_number; });
  ends.push_back(end);
  return ends;
}

void Log::Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps) {
  writer_.ForgetLargeBlocks(sequence);
  TryWithMemory([&] { files_.Retire(sequence, keeps); });
}

void Log::Adopt(std::vector<LogEnd> recovered) { files_.Adopt(std::move(recovered)); }

LogStatistics Log::statistics() const {
  LogStatistics statistics = progress_.statistics();
  statistics.files_recycled = files_.recycled();
  statistics.bytes_taken = writer_.bytes_taken();
  return statistics;
}

absl::StatusOr<LogEnd> Log::Close() {
  if (closed_) return absl::FailedPreconditionError("the log is closed already");
  closed_ = true;
  const absl::Status synced = progress_.failed() ? progress_.status() : Sync();
  group_commit_->Stop();
  const LogEnd end = writer_.end();
  files_.Stop(synced.ok() && progress_.status().ok() ? &end : nullptr);
  VARVE_RETURN_IF_ERROR(synced);
  VARVE_RETURN_IF_ERROR(progress_.status());
  VARVE_ASSERT(progress_.durable() == progress_.appended());
  return end;
}

}  // namespace varve
