// Spare files are files that are out of use, over which new files are written.
//
// A new file costs more than its bytes: the file system has to find blocks for it, and the kernel
// pages. When it is removed, the file system gives the blocks back; where it is mounted with
// `discard`, as many cloud images are, the device is told so and serves nobody else meanwhile, on
// virtual disks for a millisecond and more per megabyte. A file written over a spare costs neither:
// SETs of 1000 bytes in pipelines, which keep flushes and merges busy, are a fifth to three
// quarters faster (docs/decisions/0265-new-segments-are-written-over-old-files-again.md).
//
// A spare has the name of the file that it was, with ".spare" behind it. Nothing in it is of use:
// opening a store removes the spares that a crash left behind. Spares expire once none was kept or
// taken for two seconds, so that a store at rest has none, and each expires after half a minute.
//
// Thread-safety: all functions may be called from any thread.
// Invariants: all spares together take at most `most_bytes`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "util/os/file_system.h"
#include "util/os/pacer.h"
#include "util/os/steady_condition.h"

namespace varve {

class SpareFiles {
 public:
  // The steps and pauses in which a file is cut shorter, so that syncs of other files do not wait
  // for long.
  static constexpr Pacer kPacer{uint64_t{2} << 20, absl::Microseconds(500)};

  // Requires: `file_system` outlives the object.
  SpareFiles(FileSystem* file_system, uint64_t most_bytes)
      : file_system_(file_system), most_bytes_(most_bytes) {}
  SpareFiles(const SpareFiles&) = delete;
  SpareFiles& operator=(const SpareFiles&) = delete;

  // Makes the file at `path` a spare, and lets older spares expire where there is no room for all.
  // Returns false, and leaves the file where it is, if there is no room for it (an eighth of what
  // is free on the disk is the most), if it cannot be renamed, or while the spares are closed. A
  // file that has got another name meanwhile loses this one.
  // Requires: `file` is open, and has `size` bytes and no other name; nobody reads the file any
  // more, and the books on disk do not name it.
  bool Keep(const std::string& path, const File& file, uint64_t size) noexcept
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A spare that has become the file of a writer. The writer overwrites it from its start, cuts off
  // what is then left of the `old_size` bytes, or removes the file, and calls IsClean().
  struct Taken {
    std::unique_ptr<File> file;  // null: there is none
    uint64_t old_size = 0;
  };
  // Gives the spare whose size is nearest to `expected_size` the name `path`, where there is no
  // file yet. Takes none that is more than twice as large, as most of it would have to be cut off.
  Taken Take(const std::string& path, uint64_t expected_size) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Shortens the file of a taken spare to `size` bytes, in steps with pauses: the device may serve
  // nobody else while it is told what it need not keep.
  [[nodiscard]] static absl::Status CutDown(File* file, uint64_t old_size, uint64_t size);
  // Says that nothing of the old bytes of a taken spare is left.
  void IsClean() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the path of a spare if they have expired at `now`, which is no spare then and which the
  // caller removes; an empty one if there is none.
  std::string TakeExpired(SteadyTime now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when the spares expire; kEndOfTime if there is none.
  SteadyTime expiry() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From Close() until Open() was called as often, nothing is kept and nothing taken. Returns the
  // paths of the spares, which are none then and which the caller removes.
  std::vector<std::string> Close() ABSL_LOCKS_EXCLUDED(mutex_);
  void Open() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether no taken spare has old bytes in it.
  bool AreClean() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns once that is so.
  void AwaitClean() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Spare {
    std::string path;
    uint64_t size;
    SteadyTime kept;
  };

  // Returns how many bytes all spares in the directory of `path` may take now.
  uint64_t MostBytes(const std::string& path) const;
  // Takes the spare nearest to `expected_size` out of the list; an empty path if none will do.
  Spare TakeNearest(uint64_t expected_size) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveOut(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  FileSystem* const file_system_;
  const uint64_t most_bytes_;
  mutable absl::Mutex mutex_;
  SteadyCondition cleaned_;
  std::vector<Spare> spares_ ABSL_GUARDED_BY(mutex_);         // the oldest first
  SteadyTime last_use_ ABSL_GUARDED_BY(mutex_);               // when one was kept or taken
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;                // of the spares
  std::vector<std::string> expired_ ABSL_GUARDED_BY(mutex_);  // spares that made room for others
  size_t written_over_ ABSL_GUARDED_BY(mutex_) = 0;           // taken ones that are not clean yet
  size_t closed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
