// The backups and the archive of a soak's primary, and what comes back from them.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "unit-tests/prove/soak/scene.h"
#include "unit-tests/testing/server_process.h"

namespace varve::prove {

struct CopyFigures {
  uint64_t full = 0;
  uint64_t incremental = 0;
  uint64_t put_off = 0;   // as the archive took a base at that moment, or the directory was full
  uint64_t restored = 0;  // stores that were compared
};

class SavedCopies {
 public:
  // `directory` exists. Requires: `scene` outlives the object.
  SavedCopies(std::string server, std::string client, std::string directory, Scene* scene);

  // Starts the archiver. From here on the archive has every version.
  absl::Status Begin();
  // Takes a backup after each pause, and notes from time to time what the archive has to bring
  // back, until the load is over.
  void Run(absl::Duration pause);
  // Ends the archiver and brings the archive up to date. Requires: nothing writes any more.
  absl::Status End();
  // Verifies the backups and the archive, restores the newest backup, and the archive to an earlier
  // version and to its end, and compares what came back.
  absl::Status Check();

  const CopyFigures& figures() const { return figures_; }

 private:
  absl::Status TakeBackup(bool incremental);
  // Runs client_main and returns what it printed. Internal: it did not end with 0.
  absl::StatusOr<std::string> Ask(std::vector<std::string> words, const std::string& output);
  // Restores with the options, serves what came back, and compares it with what the feed told up
  // to the version that came back, which is `least` or a later one.
  absl::Status Restore(const std::string& from, const std::vector<std::string>& options,
                       int64_t least);

  const std::string server_;
  const std::string client_;
  const std::string directory_;
  Scene& scene_;
  CopyFigures figures_;
  std::optional<testing::Process> archiver_;
  int64_t backed_up_ = 0;       // the version of the newest backup
  int64_t ended_ = 0;           // the newest version when the load was over
  std::vector<int64_t> noted_;  // versions that the archive may be asked for
};

}  // namespace varve::prove
