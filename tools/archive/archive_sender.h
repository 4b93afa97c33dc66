// A sender takes the files of an archive to where they stay, such as an object store. What it has
// taken can be fetched back to a directory, which then is the archive.
//
// Thread-safety: several threads may send at the same time.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace varve {

class ArchiveSender {
 public:
  virtual ~ArchiveSender() = default;

  // Sends the file at `path` under `name`, which is relative to the archive's directory, such as
  // "changes/0000000007.arc". What had the name before is replaced. OK: the file is where it stays.
  [[nodiscard]] virtual absl::Status Send(const std::string& name, const std::string& path) = 0;
};

}  // namespace varve
