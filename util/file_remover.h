// Removes large files bit by bit on a thread of its own.
//
// The file system frees a file's blocks (and may tell the device) in one go when it is removed, and syncs of other files wait
// meanwhile: 23 ms behind a file of 120 MB here. Cut off in steps with pauses, the same file holds up nobody for more than 1 ms.
// Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/file_system.h"
#include "util/steady_condition.h"

namespace varve {

class FileRemover {
 public:
  explicit FileRemover(FileSystem* file_system) : file_system_(file_system) {}
  // Removes at once what is still to be removed.
  ~FileRemover();
  FileRemover(const FileRemover&) = delete;
  FileRemover& operator=(const FileRemover&) = delete;

  // Returns at once; removes at once where there is no memory to put it off. A crash may leave the file behind, whole or cut
  // short; a failure leaves it without a word: the caller's books already say that it is not in use, and who cleans up by them
  // finds it. Needs no memory, since destructors call it.
  // `first` is called on the thread before, if there is time for it: not where the remover ends.
  void Remove(const std::string& path, std::function<void()> first = nullptr) noexcept;

 private:
  struct Task {
    std::string path;
    std::function<void()> first;
  };

  void Run();
  void RemoveNow(const std::string& path);
  // Cuts the file down to nothing; gives up when stopping, or at an error.
  void CutDown(const std::string& path);
  bool Pause();  // false: stopping

  FileSystem* const file_system_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // started by the first Remove
};

}  // namespace varve
