// The ingester commits bulk ingests (include/varve/ingest.h).
//
// An ingest builds the segments of one run on its own (db/ingest/ingest_builder.h). Its commit
//   1. flushes what is in the write buffers, while others go on writing;
//   2. begins an exclusive write and flushes the little that came since, so that everything older
//      is in segments;
//   3. gives the run the next sequence, writes the manifest with the run as the newest one of level
//      0, and the sequence as the flushed one;
//   4. with the commit lock held, appends to the log what happened, publishes the tree and moves
//      the visible sequence.
// The manifest is the commit point: recovery needs nothing of the log up to the flushed sequence.
// Clock marks do not wait for exclusive writes; if one takes the sequence between 3 and 4, both are
// done again. If something else fails, the manifest of the tree without the run is written again;
// if that fails, too, clock marks use the sequences up, so that no write that the manifest on disk
// would hide is ever acknowledged.
//
// Thread-safety: an ingester is a plain value; one thread at a time uses an ingest.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "db/commit/commit_pipeline.h"
#include "db/commit/data_bound.h"
#include "db/commit/range_watches.h"
#include "db/counting/key_counter.h"
#include "db/engine/version_set.h"
#include "db/ingest/ingest_files.h"
#include "varve/ingest.h"

namespace varve {

class Ingester {
 public:
  // The parts that an ingest needs; all outlive it. `tree` are those of the version set.
  struct Parts {
    VersionSetParts tree;
    VersionSet* version_set = nullptr;
    CommitPipeline* pipeline = nullptr;
    DataBound* data_bound = nullptr;
    RangeWatches* watches = nullptr;
    std::shared_ptr<IngestFiles> files;
  };

  explicit Ingester(Parts parts) : parts_(std::move(parts)) {}

  // As IngestingStore::BeginIngest().
  [[nodiscard]] absl::StatusOr<std::unique_ptr<Ingest>> Begin(const IngestOptions& options) const;

 private:
  Parts parts_;
};

}  // namespace varve
