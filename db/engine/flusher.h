// The flusher is the thread that turns full write buffers into segments, oldest first. Where
// several wait, job threads write some of them at the same time; the flusher installs each as soon
// as all older ones are installed. It also frees replaced super versions, and the memory that is
// kept for write buffers when it has flushed none for two seconds.
//
// It gives back what the log keeps on disk when the store is at rest (db/engine/log_tidier.h).
//
// It tries a flush that failed again after 200 ms; meanwhile the commit pipeline refuses writes
// that add data.
//
// Thread-safety: Start() and Stop() belong to the engine's opening and closing; the figures may be
// read on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/commit/commit_pipeline.h"
#include "db/commit/range_watches.h"
#include "db/compaction/compaction.h"
#include "db/compaction/value_separation.h"
#include "db/engine/log_tidier.h"
#include "db/engine/version_set.h"
#include "db/version/super_versions.h"
#include "util/base/duration_histogram.h"
#include "util/os/steady_condition.h"

namespace varve {

class Flusher {
 public:
  // `parts` are those of the version set.
  Flusher(VersionSetParts parts, VersionSet* version_set, CommitPipeline* pipeline,
          ExpirySweeper* sweeper)
      : parts_(std::move(parts)),
        version_set_(*version_set),
        pipeline_(*pipeline),
        watches_({parts_.versions, pipeline, sweeper, parts_.clock}),
        tidier_(parts_.versions, parts_.log, pipeline, &parts_.caches->values) {}

  void Start();
  // Finishes the flush that is under way and returns once the thread has ended.
  void Stop();
  // Returns the watches, which look through each buffer before it is flushed.
  RangeWatches& watches() { return watches_; }

  uint64_t flushes() const { return flushes_.load(); }
  DurationCounts times() const { return times_.Read(); }
  uint64_t flushed_bytes() const { return flushed_bytes_.load(); }

 private:
  // The flush of one buffer.
  struct Flush {
    FullBuffer full;
    CompactionContext context;
    std::unique_ptr<ValueSeparation> separation;
    bool is_first = false;  // there is no segment yet
    SteadyTime began = SteadyTime::min();
    absl::StatusOr<CompactionResult> result = absl::AbortedError("flush: not done");
  };

  void Loop();
  // Flushes the oldest full buffer, and with it as many as there are threads for.
  absl::Status FlushOldest();
  // Returns buffers from the front of the flush queue, one for each thread that may flush.
  std::vector<FullBuffer> BuffersToFlush() const;
  Flush Prepare(FullBuffer full);
  // Writes the segments. Any thread may call it.
  static void Write(Flush* flush);
  absl::Status Install(const Flush& flush);
  // Decides where the flush leaves large values (db/values/value_file.h).
  std::unique_ptr<ValueSeparation> NewValueSeparation(const FullBuffer& full,
                                                      const CompactionContext& context);

  const VersionSetParts parts_;
  VersionSet& version_set_;
  CommitPipeline& pipeline_;
  RangeWatches watches_;
  LogTidier tidier_;  // the thread's
  DurationHistogram times_;
  std::atomic<uint64_t> flushes_{0};
  std::atomic<uint64_t> flushed_bytes_{0};
  std::thread thread_;
};

}  // namespace varve
