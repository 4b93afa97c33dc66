// The ingest builder turns sorted pairs into the segments of one run, while they arrive.
//
// A segment ends at the usual size or at a million keys, so that the builder's memory stays below
// some 50 MiB however small the records are; a large record is written through. The records carry
// sequences that the commit replaces (SegmentInfo::ingested_at). Values stay in their records. If a
// range is replaced, the range tombstone is cut at the borders of the segments.
//
// Thread-safety: one thread at a time uses a builder.
// Invariants: keys ascend strictly; a refused Add() has changed nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/format/key_counts.h"
#include "db/format/segment_info.h"
#include "db/ingest/ingest_files.h"
#include "db/segment/segment_builder.h"
#include "type/tree_key.h"
#include "util/os/file_system.h"
#include "varve/ingest.h"

namespace varve {

class IngestBuilder {
 public:
  struct Options {
    FileSystem* file_system = nullptr;
    std::string directory;
    std::function<uint64_t()> next_file_number;
    uint64_t segment_size = 128u << 20;
    NamespaceGeneration generation = kNoGeneration;
    std::optional<IngestRange> replace = std::nullopt;
    bool shares_keys = false;  // SegmentBuilder::Options
    // The files of all ingests of the store.
    std::shared_ptr<IngestFiles> files = std::make_shared<IngestFiles>();
  };

  explicit IngestBuilder(Options options) : options_(std::move(options)) {}
  // Removes the files unless Keep() was called.
  ~IngestBuilder();
  IngestBuilder(const IngestBuilder&) = delete;
  IngestBuilder& operator=(const IngestBuilder&) = delete;

  // Does what Ingest::Add() does.
  [[nodiscard]] absl::Status Add(absl::Span<const IngestPair> pairs);
  // Writes and syncs the rest. It may be called again, and then does nothing more.
  // Requires: no Add() follows.
  [[nodiscard]] absl::Status Finish();
  // Has the destructor leave the files in place: a manifest names them, or may name them.
  void Keep() { kept_ = true; }

  // Returns the finished segments, ascending and disjoint, with the sequences that the files have.
  const std::vector<SegmentInfo>& segments() const { return segments_; }
  const Options& options() const { return options_; }
  const IngestProgress& progress() const { return progress_; }
  const std::string& first_key() const { return first_key_; }
  const std::string& last_key() const { return last_key_; }

 private:
  absl::Status Check(absl::Span<const IngestPair> pairs) const;
  absl::Status AddChecked(const IngestPair& pair);
  absl::Status BeginSegment(std::string_view tree_key, uint64_t record_size);
  // Finishes the segment. Its range tombstone, if a range is replaced, reaches up to the tree key
  // `end`.
  absl::Status FinishSegment(const std::string& end);

  const Options options_;
  std::unique_ptr<SegmentBuilder> builder_;  // null between two segments
  std::string tombstone_begin_;              // of the segment being built
  uint64_t number_ = 0;                      // of that segment
  GenerationKeyCounts live_;                 // in it
  std::vector<SegmentInfo> segments_;
  IngestProgress progress_;
  std::string first_key_, last_key_;
  absl::Status error_;  // that ended the ingest
  bool finished_ = false;
  bool kept_ = false;
};

}  // namespace varve
