// The files under a log: the next one is prepared before it is needed, and those that are no longer
// needed are recycled or removed.
//
// A job on the file thread (util/os/file_thread.h) prepares one file ahead
// (db/log/log_file_maker.h). While the disk is full it tries again, first after 200 ms, later after
// 1.6 s. It is paced: as long as the next file is further than the one in use, it rests between
// pieces of zeros, so that syncs do not wait behind them. The first puts of a new store come at
// 20,000 a second with these rests, 11,000 without. The files of a new store begin small, since
// whoever opens it waits for the first one, and double.
//
// A file whose operations are all in segments becomes the next file, with a new header and so a new
// epoch. Files of an earlier run are only removed, as their numbers may have been given out twice
// behind a tear. Where large values fill the files, segments keep them and none comes back; their
// zeros would be written for a single use, so the next file is allocated instead.
//
// Thread-safety: all functions may be called from any thread, but for Start() and Stop(). Lock
// order: the log writer's mutexes, then this one's. No lock is held across I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/format/log_end.h"
#include "db/log/log_file_maker.h"
#include "db/log/log_options.h"
#include "util/os/file_system.h"
#include "util/os/file_thread.h"
#include "util/os/pacer.h"
#include "util/os/steady_condition.h"

namespace varve {

class LogFiles final : private FileThread::Job {
 public:
  // Requires: `file_system` and `thread` outlive the files.
  LogFiles(FileSystem* file_system, const LogOptions& options, FileThread* thread);
  ~LogFiles() override;
  LogFiles(const LogFiles&) = delete;
  LogFiles& operator=(const LogFiles&) = delete;

  // Makes the first file, and has the file thread prepare further ones.
  [[nodiscard]] absl::StatusOr<LogFile> Start(uint64_t first_number);
  // Ends the preparing and removes the files that hold no operations.
  void Stop();

  // Returns the bytes of the prepared next file, 0 if there is none at the moment.
  uint64_t next_size() const { return next_size_.load(std::memory_order_acquire); }
  // Tells how far the file in use is written, in bytes.
  void NoteUsed(uint64_t used) { used_.store(used, std::memory_order_relaxed); }

  // Makes sure that there is a next file and that it has `size` bytes, unless another thread takes
  // it meanwhile: then the caller looks again. ResourceExhausted: it cannot be made now.
  [[nodiscard]] absl::Status PrepareNext(uint64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next file comes into use. `end` is where the one in use ends; `mostly_large`: most of it
  // are large values. NotFound: there is no next file.
  [[nodiscard]] absl::StatusOr<LogFile> Advance(const LogEnd& end, bool mostly_large)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds files that recovery replayed; they come before this log's own. Throws std::bad_alloc.
  void Adopt(std::vector<LogEnd> recovered) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up files as Log::Retire() does. Throws std::bad_alloc, and then nothing was given up.
  void Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the ends of the files before the one in use, oldest first.
  std::vector<LogEnd> Completed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the bytes in the files before the one in use.
  uint64_t completed_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many files were recycled.
  uint64_t recycled() const { return recycled_.load(std::memory_order_relaxed); }

 private:
  struct CompletedFile {
    LogEnd end;
    bool reusable = false;
  };

  static constexpr size_t kMostReusable = 4;  // retired files that are kept
  static constexpr Pacer kPacer{LogFileMaker::kStep, absl::Milliseconds(20)};

  std::string Path(uint64_t number) const;
  void RemoveNumber(uint64_t number) noexcept;
  SteadyTime Step() noexcept override;
  // Removes the files that were retired for good. Returns whether there were any.
  bool RemoveRetired();
  // Begins with the next file unless there is one.
  [[nodiscard]] absl::Status BeginNext();
  // The file that was being made is complete: it is the next one.
  [[nodiscard]] absl::Status EndNext();
  // The attempt to make a file failed. Returns when to try again.
  SteadyTime RetryAfter(absl::Status failed) noexcept;
  // Returns whether the next file is not further than the one in use, or somebody waits for it.
  bool IsAwaited() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until there is a next file or the last attempt to make one failed.
  [[nodiscard]] absl::Status WaitForNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the next file at least `size` bytes large.
  [[nodiscard]] absl::Status GrowNext(uint64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Allocates [begin, end) behind file `number` as long as it is the next one. Returns false if it
  // no longer is.
  [[nodiscard]] absl::StatusOr<bool> Extend(uint64_t number, uint64_t begin, uint64_t end)
      ABSL_LOCKS_EXCLUDED(mutex_);

  FileSystem* const file_system_;
  const LogOptions options_;
  const uint64_t file_size_;
  FileThread* const thread_;
  // The file thread's alone, once Start() has returned.
  std::function<uint64_t()> next_number_;
  uint64_t taken_number_ = 0;  // taken from next_number_, but not used yet; 0: none
  std::unique_ptr<LogFileMaker> maker_;
  absl::Duration retry_;

  mutable absl::Mutex mutex_;
  SteadyCondition changed_;
  std::vector<CompletedFile> completed_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> reusable_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> to_remove_ ABSL_GUARDED_BY(mutex_);
  LogFile next_ ABSL_GUARDED_BY(mutex_);
  uint64_t growing_ ABSL_GUARDED_BY(mutex_) = 0;      // the file that GrowNext() is at; 0: none
  absl::Status next_status_ ABSL_GUARDED_BY(mutex_);  // of the last attempt to make the next file
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;           // threads that wait for the next file
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool allocates_ ABSL_GUARDED_BY(mutex_) = false;  // the last file held mostly large values
  std::atomic<uint64_t> next_size_{0};
  std::atomic<uint64_t> used_{0};         // bytes of the file in use that are written
  std::atomic<uint64_t> size_in_use_{1};  // bytes of the file in use
  std::atomic<uint64_t> recycled_{0};
};

}  // namespace varve
