// An incoming store is a copy of another server's store that is to take the place of this server's.
// A running server gathers its files in a directory of their own; the next start puts them in place
// before it opens the store.
//
//   <store>/incoming/            the files, MANIFEST among them, and REPLICATION
//   <store>/incoming/COMPLETE    made last: the copy is to be installed
//   <store>/incoming/REMOVED     the old store's files are gone
//
// A crash at any moment leaves the old store, or a copy that the next start goes on to install.
// Files of the old store go first, its manifest at their head, so that no start could take a part
// of it for a store.
//
// Thread-safety: one thread at a time uses an object; InstallIncomingStore() runs while no store is
// open in the directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/replication/replication_file.h"
#include "util/os/file_system.h"

namespace varve {

class IncomingStore {
 public:
  // `store` is the directory of the server's own store.
  IncomingStore(FileSystem* file_system, const std::string& store);

  // Begins a copy; what is left of another one goes.
  [[nodiscard]] absl::Status Begin();
  // Takes a file over from this server's own store, which has it already.
  [[nodiscard]] absl::Status Share(const std::string& name);
  [[nodiscard]] absl::Status BeginFile(const std::string& name);
  [[nodiscard]] absl::Status Append(std::string_view bytes);
  // Returns once the file is on disk.
  [[nodiscard]] absl::Status EndFile();
  // The copy is complete: the next start installs it, with `record` as its replication file. On
  // disk on return.
  [[nodiscard]] absl::Status Seal(const ReplicationRecord& record);
  // Removes what there is of the copy.
  void Abandon();

 private:
  FileSystem& file_system_;
  const std::string store_;
  const std::string directory_;
  std::unique_ptr<File> file_;
  uint64_t written_ = 0;
};

// Installs a complete copy that an earlier run of the server left, and returns whether there was
// one. What is left of an incomplete one goes.
[[nodiscard]] absl::StatusOr<bool> InstallIncomingStore(FileSystem* file_system,
                                                        const std::string& store);

}  // namespace varve
