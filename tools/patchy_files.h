// Files of a device that can't read all of them any more: where it can't, they read as zeros, which
// no checksum passes. A tool that verifies or repairs a store finds such places as damage, and goes
// on with what is behind them.
//
// Thread-safety: as the file system beneath it, which it passes everything else on to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "util/os/file_system.h"
#include "util/os/forwarding_file_system.h"

namespace varve {

class PatchyFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  // Returns what the device said of pages that it couldn't read, each page once, in the order in
  // which they were met.
  std::vector<absl::Status> errors() const;

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override;

 private:
  class PatchyFile;
  void Note(const absl::Status& error);

  mutable absl::Mutex mutex_;
  std::vector<absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
