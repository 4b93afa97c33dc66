// The log tidier gives back the disk space that the log keeps for speed once the store is at rest:
// after a fill that is a multiple of a small store. It has the log go on in a small file and the
// write buffer flushed, so that the files before it can go.
//
// The store is at rest when nothing was appended to the log for two seconds. The log may keep 16
// MiB, or a 64th of what the tree takes if that is more; so a store that rests between small writes
// is left alone, and their buffer is not flushed.
//
// Thread-safety: the flusher thread calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "db/commit/commit_pipeline.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "util/os/steady_condition.h"

namespace varve {

class LogTidier {
 public:
  // Requires: all three outlive the tidier.
  LogTidier(SuperVersions* versions, LogView* log, CommitPipeline* pipeline)
      : versions_(*versions), log_(*log), pipeline_(*pipeline) {}

  // Looks whether the store is at rest, and tidies then. What fails is tried again at the next
  // rest. Returns when to look again.
  SteadyTime Look() noexcept;

 private:
  bool IsWasteful() const;

  SuperVersions& versions_;
  LogView& log_;
  CommitPipeline& pipeline_;
  uint64_t appended_ = 0;                  // bytes in the log at the last look
  std::optional<SteadyTime> rests_since_;  // nothing: it was tidied since
};

}  // namespace varve
