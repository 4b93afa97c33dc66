// Engine: the figures that the store keeps of itself.
#include "db/compaction/value_collection.h"
#include "db/engine/engine.h"
#include "fmt/format.h"

namespace varve {

Engine::Figures Engine::Statistics() const {
  Figures figures{{"sequence", versions_.visible()},
                  {"durable_sequence", log_->durable_sequence()},
                  {"recovered_sequence", recovered_sequence_},
                  {"gets", reader_.gets()},
                  {"writes", pipeline_.writes()},
                  {"write_conflicts", pipeline_.conflicts()},
                  {"expired_keys", sweeper_.expired_keys()},
                  {"clock_marks", watermark_.marks()}};
  {
    const SuperVersions::Pin state = versions_.Acquire();
    AddTreeFigures(*state, &figures);
  }
  AddWorkFigures(&figures);
  return figures;
}

void Engine::AddTreeFigures(const SuperVersion& state, Figures* figures) const {
  uint64_t buffered = versions_.buffer_memory().kept() + state.active->bytes_used();
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) buffered += buffer->bytes_used();
  const Version& version = *state.version;
  const ValueSpace values = ValueSpaceOf(version);
  uint64_t entries = 0;
  for (const Run* run : version.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      entries += segment->info().entries;
  }
  uint64_t retired_generations, namespaces;
  {
    absl::MutexLock lock(&versions_.mutex());
    retired_generations = versions_.RetiredGenerationsLocked().size();
    namespaces = versions_.PresentLocked()->namespaces.entries().size();
  }
  const Figures more{{"write_buffer_bytes", buffered},
                     {"full_write_buffers", state.full.size()},
                     {"levels", version.levels().size()},
                     {"runs", version.runs().size()},
                     {"segments", version.segment_count()},
                     {"segment_bytes", version.bytes()},
                     {"segment_entries", entries},
                     {"value_files", values.files},
                     {"value_bytes", values.bytes},
                     {"value_garbage_bytes", values.garbage},
                     {"uncounted_segments", counter_.UncountedSegments()},
                     {"range_tombstone_fragments",
                      version.range_tombstones().size() + state.buffered_tombstones->size()},
                     {"namespaces", namespaces},
                     {"retired_generations", retired_generations}};
  figures->insert(figures->end(), more.begin(), more.end());
}

void Engine::AddWorkFigures(Figures* figures) const {
  const LogStatistics log = log_->statistics();
  const SegmentStatistics& segments = caches_.statistics;
  Figures by_reason;
  for (size_t i = 0; i < kCompactionReasons; ++i) {
    const auto reason = static_cast<CompactionReason>(i);
    by_reason.emplace_back(fmt::format("compactions_{}", NameOf(reason)),
                           compactor_.compactions(reason));
  }
  const Figures more{{"log_groups", log.groups},
                     {"log_syncs", log.syncs},
                     {"log_bytes_appended", log.bytes_appended},
                     {"log_bytes_written", log.bytes_written},
                     {"log_files_recycled", log.files_recycled},
                     {"log_live_bytes", log_->live_bytes()},
                     {"flushes", flusher_.flushes()},
                     {"flushed_bytes", flusher_.flushed_bytes()},
                     {"compactions", compactor_.compactions()},
                     {"failed_compactions", compactor_.failed_compactions()},
                     {"compaction_input_bytes", compactor_.input_bytes()},
                     {"compacted_bytes", compactor_.compacted_bytes()},
                     {"segment_lookups", segments.lookups.Sum()},
                     {"record_reads", segments.record_reads.Sum()},
                     {"table_page_reads", segments.table_page_reads.Sum()},
                     {"scan_reads", segments.scan_reads.Sum()},
                     {"fingerprint_false_positives", segments.false_positives.Sum()},
                     {"block_cache_hits", segments.block_cache_hits.Sum()},
                     {"block_cache_misses", segments.block_cache_misses.Sum()},
                     {"block_cache_bytes", caches_.blocks.usage()},
                     {"offset_table_loads", segments.table_loads.Sum()},
                     {"offset_table_cache_bytes", caches_.tables.usage()},
                     {"pressure_percent", static_cast<uint64_t>(pipeline_.pressure() * 100)}};
  figures->insert(figures->end(), more.begin(), more.end());
  figures->insert(figures->end(), by_reason.begin(), by_reason.end());
}

}  // namespace varve
