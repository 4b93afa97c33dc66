// A bounded file system keeps what a directory takes on disk below a limit. It stands in front of
// another file system, counts the bytes by which files of the directory grow and shrink, and fails
// what would take them above the limit as a full disk fails it (ResourceExhausted). So all that
// holds for a full disk holds for the limit.
//
// The logs of the store in the directory (`*.log`), which grow in order to hold what clients write,
// are refused earlier, at the limit less the reserve, so that flushes and merges, which give space
// back, have room. That holds from KeepReserve() on: a store that is being opened begins a log, and
// it has to open where only the reserve is left, as only a running server removes data. A log in a
// directory below, such as that of the order of evictions, is a file like others.
//
// Spare files, which take the place of files to come, count toward the limit and not toward the
// reserve.
//
// A file counts with its size, once however many names it has, and however many descriptors grow it
// one after the other; where two of them grow it at the same time it may count twice until
// Measure(). What other programs change in the directory is found by Measure(), which walks over it
// while files grow and go. The count itself follows those exactly, so Measure() corrects it only
// where it contradicts what the walk can have seen, and that of spare files only where none came or
// went meanwhile.
//
// Thread-safety: all functions may be called on any thread; a file is as thread-safe as the one
// beneath it. No call of the file system beneath is made under mutex_.
// Invariants: used_ holds what grows from before it does, and what shrinks until it has.
// Requires: the file system beneath outlives it, and it outlives its files.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "util/os/file_system.h"

namespace varve {

class BoundedFileSystem : public FileSystem {
 public:
  // Bounds `directory` and what lies below it. `limit` is not 0. At least `least_reserve` bytes are
  // the reserve, but never more than half of the limit.
  BoundedFileSystem(FileSystem* base, std::string directory, uint64_t limit,
                    uint64_t least_reserve = 0);

  // A bound is the limit and the reserve, the bytes of it that logs leave alone.
  struct Bound {
    uint64_t limit = 0;
    uint64_t reserve = 0;
    uint64_t unreserved() const { return limit - reserve; }
  };
  Bound bound() const { return BoundOf(limit_.load(std::memory_order_relaxed)); }
  // Sets the limit, which is not 0. FailedPrecondition: it would be lower, and less than half of
  // its reserve would be left.
  [[nodiscard]] absl::Status SetLimit(uint64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // Returns what the directory takes without files that wait to be used again (`*.spare`).
  uint64_t needed() const {
    const uint64_t used = this->used(), spare = spare_.load(std::memory_order_relaxed);
    return used - (spare < used ? spare : used);
  }
  // Returns whether only the reserve is left. Costs three loads.
  bool IsTight() const { return needed() >= bound().unreserved(); }
  // Returns the error of what is refused now.
  absl::Status Refusal() const;

  // From now on the logs in the directory leave the reserve alone. The opener of the store there
  // calls this function once the store is open.
  void KeepReserve() { keeps_reserve_.store(true, std::memory_order_relaxed); }

  // Counts the bytes of the directory anew. NotFound: there is no such directory yet. Where files
  // grow or go meanwhile, what other programs did may be found only by a later call.
  [[nodiscard]] absl::Status Measure() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path, bool create) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<uint64_t> FreeSpace(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  static constexpr uint64_t kPartReserved = 8, kMostReserved = uint64_t{2} << 30;

  class BoundedFile;
  class Change;

  // A walk over the directory may see these bytes or miss them.
  struct Changes {
    uint64_t under_way = 0;  // bytes in used_ that the directory may not have yet, or no more
    uint64_t begun = 0;      // all that have been under way
    uint64_t given_back = 0;
  };

  Bound BoundOf(uint64_t limit) const {
    const uint64_t usual = std::min(limit / kPartReserved, kMostReserved);
    return {.limit = limit, .reserve = std::min(limit / 2, std::max(usual, least_reserve_))};
  }
  bool IsBelow(std::string_view path) const;
  // Returns whether the path is that of a log in the directory itself.
  bool IsOwnLog(std::string_view path) const;

  FileSystem& base_;
  const std::string directory_;  // with a slash at its end
  const uint64_t least_reserve_;
  absl::Mutex mutex_;
  std::atomic<uint64_t> limit_;  // written under mutex_
  Changes changes_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> used_{0};   // written under mutex_
  std::atomic<uint64_t> spare_{0};  // of these, in spare files
  std::atomic<bool> keeps_reserve_{false};
};

// Returns `bounded`, or the plain file system where nothing is bounded (null).
FileSystem* BoundedOrPlain(BoundedFileSystem* bounded);

}  // namespace varve
