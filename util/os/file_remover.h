// The file remover takes files that are out of use: it keeps some as spares for new files
// (util/os/spare_files.h) and removes the others, a step at a time, on the file thread.
//
// A file system frees the blocks of a file that is removed (and may tell the device) in one go, and
// syncs of other files wait meanwhile: 23 ms behind a file of 120 MB. So a large file is cut
// shorter by 2 MiB at a time, with a pause of 0.5 ms after each step (at most 4 GB/s, more than a
// store can write), before its name goes.
//
// A crash may leave a file behind, whole or cut short. A failure leaves it without a word: opening
// the store removes every file that the manifest does not name.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/file_system.h"
#include "util/os/file_thread.h"
#include "util/os/spare_files.h"
#include "util/os/steady_condition.h"

namespace varve {

class FileRemover final : private FileThread::Job {
 public:
  // Spares take at most `most_spare_bytes`.
  // Requires: `file_system` and `thread` outlive the remover, and the remover the writers that have
  // its spares.
  FileRemover(FileSystem* file_system, FileThread* thread, uint64_t most_spare_bytes = 0);
  // Removes at once what is still to be removed, and the spares.
  ~FileRemover() override;
  FileRemover(const FileRemover&) = delete;
  FileRemover& operator=(const FileRemover&) = delete;

  enum class Reuse { kAllowed, kNever };
  // Removes the file at `path` soon, or makes it a spare, unless the part of the disk where it lies
  // is not to be used again. Returns at once, and needs no memory, since destructors call
  // it: where there is none to put the removal off, it removes the file before it returns.
  // Requires: nobody reads the file any more, and the books on disk do not name it.
  void Remove(const std::string& path, Reuse reuse = Reuse::kAllowed) noexcept
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns once the remover has removed each file that it was asked to remove before the call, and
  // nothing of one is left in a spare or in a file that is written over one, however long the file
  // thread has to wait for a processor, and the writers of such files take.
  void AwaitRemovals() ABSL_LOCKS_EXCLUDED(mutex_);

  SpareFiles* spares() { return &spares_; }
  // While such an object lives, there are no spares: those that are there when it comes to be are
  // removed soon.
  class WithoutSpares {
   public:
    explicit WithoutSpares(FileRemover* remover);
    ~WithoutSpares() { spares_->Open(); }
    WithoutSpares(const WithoutSpares&) = delete;
    WithoutSpares& operator=(const WithoutSpares&) = delete;

   private:
    SpareFiles* const spares_;
  };

 private:
  struct Task {
    std::string path;
    Reuse reuse;
  };

  SteadyTime Step() noexcept override;
  // Takes the next path, or an expired spare, and begins with its file, or makes it a spare: then
  // path_ is empty. Returns false if there is none.
  bool Begin() noexcept;
  // Notes that the file at path_ is dealt with.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  FileSystem* const file_system_;
  FileThread* const thread_;
  SpareFiles spares_;
  absl::Mutex mutex_;
  SteadyCondition removed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // files that were taken from tasks_ or spares_
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, those that are dealt with
  // The file that is being removed; the file thread's alone.
  std::string path_;
  std::unique_ptr<File> file_;
  uint64_t size_ = 0;
};

}  // namespace varve
