// The log files are the files that a log writes: one in use, a next one that is prepared before it
// is needed, and completed ones that wait to be recycled or removed.
//
// A job on the file thread (util/os/file_thread.h) prepares the next file
// (db/log/log_file_maker.h). While the disk is full the job tries again, first after 200 ms, later
// after 1.6 s. The job is paced: as long as a larger part of the next file is done than of the file
// in use is written, it rests between pieces of zeros, so that syncs do not wait behind them. The
// first puts of a new store reach 20,000 a second with these rests, 11,000 without. The first file
// of a new store is small, because the opening of the store waits for it; each further file is
// twice as large, up to the usual size.
//
// A file whose operations are all in segments becomes the next file, with a new header and so a new
// epoch. Files of an earlier run are only removed, because their numbers may have been given out
// twice behind a tear. A file that is filled mostly with large values is kept by the segments that
// point into it and never recycled. Zeros would then be written for a single use, so the next file
// is allocated instead, as it is where most records are not synced at once.
//
// A log at rest needs no room for the writes of a moment: Shed() gives back what lies ahead of
// need, and the files become small again, as those of a new store are.
//
// Thread-safety: all functions except Start() and Stop() may be called from any thread. Lock order:
// the log writer's mutexes, then this one's. No lock is held across I/O.
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
  // The bytes of a file that Shed() asked for.
  static constexpr uint64_t kSizeAtRest = 2u << 20;

  // Requires: `file_system` and `thread` outlive the files.
  LogFiles(FileSystem* file_system, const LogOptions& options, FileThread* thread);
  ~LogFiles() override;
  LogFiles(const LogFiles&) = delete;
  LogFiles& operator=(const LogFiles&) = delete;

  // Makes the first file, and has the file thread prepare further ones.
  [[nodiscard]] absl::StatusOr<LogFile> Start(uint64_t first_number);
  // Ends the job of the file thread and removes the files that hold no operations. `last`: the
  // synced end of the file in use, in which nothing is written any more; the file is shrunk to it.
  void Stop(const LogEnd* last = nullptr);

  // Returns the size of the prepared next file; 0 if there is none at the moment.
  uint64_t next_size() const { return next_size_.load(std::memory_order_acquire); }
  // Notes how far the file in use is written, in bytes.
  void NoteUsed(uint64_t used) { used_.store(used, std::memory_order_relaxed); }

  // Waits until there is a next file and makes it at least `size` bytes large. Another thread may
  // take that file meanwhile, so the caller checks next_size() again. Returns ResourceExhausted if
  // the file cannot be made now.
  [[nodiscard]] absl::Status PrepareNext(uint64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts the next file into use. `end` is the end of the file that was in use, and `gains_by_zeros`
  // says whether most of that file were records that are synced faster where zeros lie: small ones
  // that were synced at once. If not, the files to come are allocated and not filled with zeros,
  // which would double what is written: 30 % of the processor time of unsynced fills of 1000 bytes.
  // Returns NotFound if there is no next file.
  [[nodiscard]] absl::StatusOr<LogFile> Advance(const LogEnd& end, bool gains_by_zeros)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the files that recovery replayed, before this log's own ones. Throws std::bad_alloc.
  void Adopt(std::vector<LogEnd> recovered) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up files as Log::Retire() does. Throws std::bad_alloc, and then nothing was given up.
  void Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Says whether retired files are recycled from now on, as they are at first. If not, those that
  // wait for that are removed, and the next file is made anew, unless it is ready already. Throws
  // std::bad_alloc, and then nothing has changed; `recycles` true never throws.
  void SetRecycling(bool recycles) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back the space of files that wait to be recycled, and has the files that are made from
  // now on be small until one of them comes into use. A next file that is ready stays, since the
  // log may have promised it to a record: the caller has the log go on in it, and in the small one
  // behind it. No file is recycled before the small one is full. Returns false and does nothing
  // while SetRecycling(false) holds, as somebody counts on the next file then, and while the disk
  // is full. Throws std::bad_alloc, and then nothing has changed.
  bool Shed() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns about how many bytes the files take on disk, those ahead of need included.
  uint64_t disk_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the ends of the files before the one in use, oldest first.
  std::vector<LogEnd> Completed() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the bytes in the files before the one in use.
  uint64_t completed_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the last attempt to make the next file found no space.
  bool lacks_space() const { return lacks_space_.load(std::memory_order_relaxed); }
  // Returns how many files were recycled.
  uint64_t recycled() const { return recycled_.load(std::memory_order_relaxed); }

 private:
  struct CompletedFile {
    LogEnd end;
    bool reusable = false;
  };

  // The state says what Shed() has led to: nothing (any more), small files that are made, or one
  // that is in use.
  enum class Shedding { kNo, kAsked, kSmallInUse };

  // The rules say what is done with files that are retired, and how files are made.
  struct Rules {
    bool recycles = true;
    bool allocates = false;  // the last file gained nothing by zeros
    Shedding shedding = Shedding::kNo;
  };

  static constexpr size_t kMostReusable = 4;  // retired files that wait to be recycled
  static constexpr Pacer kPacer{LogFileMaker::kStep, absl::Milliseconds(20)};

  std::string Path(uint64_t number) const;
  void RemoveNumber(uint64_t number) noexcept;
  SteadyTime Step() noexcept override;
  // Removes the retired files that are not recycled. Returns whether there were any.
  bool RemoveRetired();
  // Begins to make the next file unless there is one.
  [[nodiscard]] absl::Status BeginNext();
  // Makes the complete file of maker_ the next one, unless it is recycled and must not be.
  [[nodiscard]] absl::Status EndNext();
  // Notes that making a file has failed. Returns when to try again.
  SteadyTime RetryAfter(absl::Status failed) noexcept;
  // Returns whether the next file has to be made without rests: a thread waits for it, or no larger
  // part of it is done than of the file in use is written.
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
  // Only the file thread uses these once Start() has returned.
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
  Rules rules_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> next_size_{0};
  std::atomic<bool> lacks_space_{false};
  std::atomic<uint64_t> used_{0};         // bytes of the file in use that are written
  std::atomic<uint64_t> size_in_use_{1};  // bytes of the file in use
  std::atomic<uint64_t> recycled_{0};
};

}  // namespace varve
