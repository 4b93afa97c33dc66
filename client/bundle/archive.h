// Writes a compressed tar archive of files that are in memory. The archive has its name only once
// it is whole.
//
// Thread-safety: All threads may call the function.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace varve {

struct ArchivedFile {
  std::string name;
  std::string content;
};

// Writes the files, in their order, below one folder named like the archive, with mode 0600. The
// name of the archive ends in .tar.gz, .tgz, .tar.zst or .tar. InvalidArgument: in something else.
// AlreadyExists: there is a file of that name.
[[nodiscard]] absl::Status WriteArchive(const std::string& path,
                                        const std::vector<ArchivedFile>& files);

}  // namespace varve
