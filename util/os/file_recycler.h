// What becomes of files that are out of use: some stay as spares, which new files of about their
// size are written over; the others are removed bit by bit, on a thread of its own.
//
// A new file costs much more than the bytes written into it: the file system has to find blocks and
// the kernel pages, and gives both back when the file is removed. Written over an old one, whose
// pages are most likely still in memory, the same bytes took 0.4 of the processor time here, and
// 0.4 of the time (docs/decisions/0036). What can't stay is removed in steps with pauses: the file
// system frees a file's blocks (and may tell the device) in one go, and syncs of other files wait
// meanwhile, 23 ms behind a file of 120 MB.
//
// Spares (not to be taken for the log's, db/log/log_files.h) have the name of the file with
// kSpareSuffix behind it, and go when nobody wanted them for a minute, when the disk runs full, and
// with the recycler: a crash leaves them behind, and nothing in them is of use. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"

namespace varve {

class FileRecycler {
 public:
  static constexpr std::string_view kSpareSuffix = ".spare";

  struct Options {
    // Bytes that spares may take altogether; they never take more than an eighth of what is free on
    // their disk.
    uint64_t capacity = 0;
    absl::Duration lifetime = absl::Minutes(1);  // of a spare that nobody wants
  };
  FileRecycler(FileSystem* file_system, Options options)
      : file_system_(file_system), options_(options) {}
  // Removes at once what is still to be removed, and the spares.
  ~FileRecycler();
  FileRecycler(const FileRecycler&) = delete;
  FileRecycler& operator=(const FileRecycler&) = delete;

  // The file at `path` is out of use: nobody reads it any more, and the books on disk say so.
  // Returns at once; removes at once where there is no memory to put it off. A crash may leave the
  // file behind, whole, cut short or written over; a failure leaves it without a word: who cleans
  // up by the books finds it. Needs no memory, since destructors call it. `first` is called on the
  // thread before, if there is time for it: not where the recycler ends. What may lie on a part of
  // the disk that failed (not `is_sound`) becomes no spare: who tries again is to get another part.
  void Retire(const std::string& path, bool is_sound = true,
              std::function<void()> first = nullptr) noexcept;

  // A file at `path`, where there is none yet: a spare of about `expected_size` bytes, four times
  // as many at most, or a new one. There are `*old_size` bytes of another file in it (0: it is
  // new): who has written it cuts off what is left of them (CutDown).
  [[nodiscard]] absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path,
                                                             uint64_t expected_size,
                                                             uint64_t* old_size);

  // Shortens the file from `old_size` to `size` bytes, in steps with pauses.
  [[nodiscard]] absl::Status CutDown(File* file, uint64_t old_size, uint64_t size);

  // Bytes of the spares.
  uint64_t spare_bytes() const {
    absl::MutexLock lock(&mutex_);
    return spare_bytes_;
  }

 private:
  struct Task {
    std::string path;
    bool is_sound;
    std::function<void()> first;
  };
  struct Spare {
    std::string path;
    uint64_t size;
    SteadyTime expires;
  };

  void Run();
  void RemoveNow(const std::string& path);
  void RemoveInSteps(const std::string& path);
  // Makes a spare of the file, if there is room for one.
  absl::Status Keep(const std::string& path);
  // Those that are too old, or too many for the disk.
  void RemoveUnwanted();
  uint64_t Room(const std::string& path) const;
  // The spare with the least to add or to cut off; empty path: none that will do.
  Spare TakeSpare(uint64_t expected_size);
  bool Pause();  // false: stopping

  FileSystem* const file_system_;
  const Options options_;
  mutable absl::Mutex mutex_;
  SteadyCondition changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<Spare> spares_ ABSL_GUARDED_BY(mutex_);  // oldest first
  uint64_t spare_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // started by the first Retire
};

}  // namespace varve
