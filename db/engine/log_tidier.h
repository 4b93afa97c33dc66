// The log tidier gives back the disk space that the log keeps for speed once the store is at rest:
// after a fill that is a multiple of a small store. It has the log go on in a small file and the
// write buffer flushed, so that the files before it can go.
//
// The store is at rest when nothing was appended to the log for two seconds, or since the opening.
// The log may keep 8 MiB, or a 64th of what the segments take if that is more; so a store that
// rests between small writes is left alone, and their buffer is not flushed.
//
// It takes two steps where a large next file is ready, as the log may have promised that to a
// record: the log goes on in it, and from there in the small one behind it. A write ends the rest,
// and what was begun does no harm then.
//
// It gives memory back, too: what merges and flushes leave to the allocator goes once nothing was
// appended or merged for two seconds.
//
// Thread-safety: the flusher thread calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "db/commit/commit_pipeline.h"
#include "db/log/log.h"
#include "db/values/value_file.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "util/os/steady_condition.h"
#include "varve/types.h"

namespace varve {

// Has the log forget the files whose records segments hold by now. Files that segments point into
// stay as value files.
// Requires: the manifest that says that everything up to `flushed` is in segments is on disk.
void RetireLog(Log* log, const ValueFiles& values, SequenceNumber flushed) noexcept;

class LogTidier {
 public:
  // Requires: all outlive the tidier.
  LogTidier(SuperVersions* versions, LogView* log, CommitPipeline* pipeline, ValueFiles* values)
      : versions_(*versions), log_(*log), pipeline_(*pipeline), values_(*values) {}

  // Looks whether the store is at rest, and takes the next step of tidying then. What fails is
  // tried again at the next rest. Returns when to look again.
  SteadyTime Look() noexcept;

 private:
  bool IsWasteful() const;
  SequenceNumber Flushed() const;
  // Gives memory back, once in each rest from appending and merging.
  void LookAtMemory(SteadyTime now, bool appends);
  // Takes a step, if the next file is ready. Returns whether another one is to follow.
  bool TakeStep();

  SuperVersions& versions_;
  LogView& log_;
  CommitPipeline& pipeline_;
  ValueFiles& values_;
  std::optional<uint64_t> appended_;       // bytes in the log at the last look
  std::optional<SteadyTime> rests_since_;  // nothing: it was tidied since
  bool tidies_ = false;
  const Version* seen_ = nullptr;             // at the last look; only compared
  std::optional<SteadyTime> is_still_since_;  // nothing: memory was given back since
};

}  // namespace varve
