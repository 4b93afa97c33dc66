// The files under a log: the next one is prepared before it is needed, the ones that are no longer
// needed are recycled.
//
// A thread of its own prepares one spare file ahead: zero-filled, allocated or recycled, synced,
// under its final name, so that writing to it changes no metadata and a full disk is noticed before
// anything is promised. While the disk is full it tries again, first after 200 ms, later after 1.6
// s. It takes its time, so that syncs of the file in use don't wait behind its zeros, as long as
// the spare is further than that file. Files of a new store begin small, since whoever opens it
// waits for the first, and double. A file whose operations are all in segments becomes the next
// spare, with a new header and so a new epoch; files of an earlier run are only removed, as their
// numbers may have been given out twice behind a tear.
//
// Thread-safe. Lock order: the log's mutexes, then this one's. No lock is held across I/O.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/log/log.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"

namespace varve {

struct LogFile {
  uint64_t number = 0;
  uint64_t size = 0;         // bytes, zero but for the header, or what an earlier use left
  bool is_recycled = false;  // the latter
  std::shared_ptr<File> file;
};

class LogFiles {
 public:
  LogFiles(FileSystem* file_system, const LogOptions& options);
  ~LogFiles();

  // Prepares the first file and starts the thread that prepares further ones.
  [[nodiscard]] absl::StatusOr<LogFile> Start(uint64_t first_number);
  // Stops the thread and removes the spare.
  void Stop();

  // Bytes of the prepared next file; 0: there is none at the moment.
  uint64_t spare_size() const { return spare_size_.load(std::memory_order_acquire); }

  // How far the file in use is written, bytes.
  void NoteUsed(uint64_t used) { used_.store(used, std::memory_order_relaxed); }

  // Waits while a spare is being prepared. ResourceExhausted or another error: the last attempt
  // failed.
  [[nodiscard]] absl::Status WaitForSpare();
  // Makes the spare at least `size` bytes large, unless somebody takes it meanwhile: then it is as
  // large as it was, and the caller looks again.
  [[nodiscard]] absl::Status GrowSpare(uint64_t size);
  // `end` is where the file in use ends; the spare takes its place. NotFound: there is no spare.
  [[nodiscard]] absl::StatusOr<LogFile> Advance(const LogEnd& end);

  void Adopt(std::vector<LogEnd> recovered);
  // As Log::Retire.
  void Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps);
  // Files before the one in use, oldest first, and the bytes they hold.
  std::vector<LogEnd> Completed() const;
  uint64_t completed_bytes() const;
  // What was in the file in use. The next files are allocated, not filled with zeros, where these
  // would not pay: they do where they are overwritten by one sync after the other, in a file that
  // will be recycled, not for large values, whose files are kept, nor where hardly anything is
  // synced at once. There files aren't recycled either: what was never used takes writes best
  // (db/log/log_writer.cc).
  void NoteContent(bool mostly_large, bool mostly_unsynced) {
    allocates_.store(mostly_large || mostly_unsynced, std::memory_order_relaxed);
    recycles_.store(!mostly_unsynced, std::memory_order_relaxed);
  }
  uint64_t recycled() const { return recycled_.load(std::memory_order_relaxed); }

 private:
  struct CompletedFile {
    LogEnd end;
    bool reusable = false;
  };

  // Retired files that are kept; further ones are removed.
  static constexpr size_t kMostReusable = 4;
  // Where they aren't recycled: for when the disk is full.
  static constexpr size_t kReusableWhenFull = 1;
  size_t MostReusable() const {
    return recycles_.load(std::memory_order_relaxed) ? kMostReusable : kReusableWhenFull;
  }
  std::string Path(const std::string& name) const { return options_.directory + "/" + name; }
  // Whether somebody waits for what is being done.
  enum class Haste : uint8_t { kAtOnce, kInTime };
  [[nodiscard]] absl::Status WriteZeros(File* file, uint64_t begin, uint64_t end, Haste haste);
  // Makes the room [begin, end) of the file, and puts it on disk.
  [[nodiscard]] absl::Status Extend(File* file, uint64_t begin, uint64_t end, Haste haste);
  // Leaves the disk to others for a moment, if a spare of which `done` of `size` bytes are there
  // can wait.
  void RestBetweenZeros(uint64_t done, uint64_t size);
  // Prepares file `number` of `size` bytes, from the file at `recycled_path` unless that is empty.
  [[nodiscard]] absl::StatusOr<LogFile> Prepare(uint64_t number, uint64_t size,
                                                const std::string& recycled_path, Haste haste);
  [[nodiscard]] absl::StatusOr<std::unique_ptr<File>> PrepareContent(
      uint64_t number, uint64_t size, const std::string& temporary,
      const std::string& recycled_path, Haste haste);
  // Writes zeros behind the spare as long as it is the spare. False: it no longer is.
  [[nodiscard]] absl::StatusOr<bool> ExtendSpare(uint64_t number, uint64_t begin, uint64_t end);
  void Run();
  void RemoveFile(uint64_t number);
  void RemoveFiles(const std::vector<uint64_t>& numbers);
  [[nodiscard]] absl::Status PrepareSpare();

  FileSystem* const file_system_;
  const LogOptions options_;
  const uint64_t file_size_;
  std::function<uint64_t()> next_number_;  // called by the thread alone

  mutable absl::Mutex mutex_;
  SteadyCondition changed_;
  std::vector<CompletedFile> completed_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> reusable_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> to_remove_ ABSL_GUARDED_BY(mutex_);
  LogFile spare_ ABSL_GUARDED_BY(mutex_);
  uint64_t growing_ ABSL_GUARDED_BY(mutex_) = 0;       // the file that a GrowSpare is at; 0: none
  absl::Status spare_status_ ABSL_GUARDED_BY(mutex_);  // of the last attempt to prepare one
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;            // for a spare
  std::atomic<uint64_t> spare_size_{0};
  std::atomic<uint64_t> used_{0};         // of the file in use,
  std::atomic<uint64_t> size_in_use_{1};  // which is so large
  std::atomic<bool> stopping_{false};
  std::atomic<bool> allocates_{false};
  std::atomic<bool> recycles_{true};
  std::atomic<uint64_t> recycled_{0};
  uint64_t spare_number_ = 0;  // taken, but not used yet; 0: none. The thread's alone
  std::thread thread_;
};

}  // namespace varve
