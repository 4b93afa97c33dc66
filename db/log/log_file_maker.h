// A log file maker makes one log file, a step at a time: it writes the header, fills the rest with
// zeros (or allocates it, or recycles an old file), syncs the file and gives it its final name. So
// later writes to the file change no metadata, and a full disk is noticed before the log has
// promised room to a writer.
//
// Zeros save the sync of a small group a third of its time (docs/decisions/0008). The maker writes
// them in pieces, so that the syncs of commits never queue behind a whole file.
//
// The destructor removes an unfinished file. A crash leaves it under its temporary name; recovery
// removes it.
//
// Thread-safety: a maker belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/log/log_options.h"
#include "util/os/file_system.h"

namespace varve {

struct LogFile {
  uint64_t number = 0;
  uint64_t size = 0;         // bytes
  bool is_recycled = false;  // behind the header lies what an earlier use left; else zeros
  std::shared_ptr<File> file;
};

class LogFileMaker {
 public:
  struct Plan {
    uint64_t number = 0;
    uint64_t size = 0;          // bytes, whole pages
    std::string recycled_path;  // the old file that is recycled; empty: none
    bool allocates = false;     // the maker allocates space instead of writing zeros
  };
  // The bytes that a step fills with zeros.
  static constexpr uint64_t kStep = 256u << 10;

  // Requires: `file_system` and `options` outlive the maker.
  LogFileMaker(FileSystem* file_system, const LogOptions& options, Plan plan);
  // Removes the file, unless Take() was called.
  ~LogFileMaker();
  LogFileMaker(const LogFileMaker&) = delete;
  LogFileMaker& operator=(const LogFileMaker&) = delete;

  // Does the next step. Returns whether the file is complete. Requires: no step has failed.
  [[nodiscard]] absl::StatusOr<bool> Step();
  // Returns the fraction of the file that is done.
  double part_done() const {
    return static_cast<double>(filled_) / static_cast<double>(plan_.size);
  }
  uint64_t size() const { return plan_.size; }
  // Returns whether it makes the file of an old one.
  bool recycles() const { return !plan_.recycled_path.empty(); }
  // Returns the file, which is the caller's from now on. Requires: it is complete.
  LogFile Take();

 private:
  enum class State { kNew, kFilling, kComplete, kTaken };

  // Writes the next zeros and has the kernel begin to put them on disk.
  [[nodiscard]] absl::Status WriteZeros();
  // Opens the temporary file and writes its header.
  [[nodiscard]] absl::Status Begin();
  // Syncs the file and gives it its name.
  [[nodiscard]] absl::Status Finish();
  std::string Path(const std::string& name) const { return options_.directory + "/" + name; }

  FileSystem* const file_system_;
  const LogOptions& options_;
  const Plan plan_;
  const std::string temporary_;
  State state_ = State::kNew;
  uint64_t filled_ = 0;  // bytes from the file's beginning
  std::unique_ptr<File> file_;
};

}  // namespace varve
