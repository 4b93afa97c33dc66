// Engine: the figures that the store keeps of itself.
#include <algorithm>
#include <cmath>

#include "db/compaction/value_collection.h"
#include "db/engine/engine.h"
#include "db/version/range_estimate.h"
#include "fmt/format.h"

namespace varve {
namespace {

// `buffered`: what write buffers have.
std::vector<NamespaceEstimate> EstimateNamespaces(const SuperVersion& state,
                                                  const GenerationKeyCounts& buffered) {
  GenerationKeyCounts live = buffered;
  for (const Run* run : state.version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) live.Add(segment->info().live);
  }
  std::vector<NamespaceEstimate> estimates;
  for (const ManifestNamespace& entry : state.namespaces.entries()) {
    const RangeEstimate stored =
        EstimateRange(*state.version, FirstTreeKey(entry.generation), EndTreeKey(entry.generation));
    const KeyCounts added = buffered.Of(entry.generation);
    const auto sum = [](double below, int64_t above) {
      return static_cast<uint64_t>(std::max(0.0, below + static_cast<double>(above)));
    };
    const uint64_t keys = sum(stored.entries, added.keys);
    const KeyCounts counts = live.Of(entry.generation);
    const double share =
        counts.keys <= 0 ? 0
                         : static_cast<double>(counts.expiring) / static_cast<double>(counts.keys);
    estimates.push_back({.id = entry.id,
                         .name = state.namespaces.ShownNameOf(entry.id),
                         .keys = keys,
                         .bytes = sum(stored.bytes, added.bytes),
                         .expiring = static_cast<uint64_t>(
                             std::lround(static_cast<double>(keys) * std::clamp(share, 0.0, 1.0))),
                         .mean_expiry_ms = MeanExpiry(counts)});
  }
  return estimates;
}

}  // namespace

Engine::Figures Engine::Statistics() const {
  Figures figures{{"sequence", versions_.visible()},
                  {"durable_sequence", log_->durable_sequence()},
                  {"recovered_sequence", recovered_.sequence},
                  {"gets", reader_.gets()},
                  {"writes", pipeline_.writes()},
                  {"write_conflicts", pipeline_.conflicts()},
                  {"commit_lock_timed_batches", pipeline_.groups().timed_batches()},
                  {"commit_lock_timed_nanos", pipeline_.groups().timed_nanos()},
                  {"expired_keys", sweeper_.expired_keys()},
                  {"clock_marks", watermark_.marks()}};
  {
    const SuperVersions::Pin state = versions_.Acquire();
    AddTreeFigures(*state, ValueSpaceOf(*state->version), &figures);
  }
  figures.emplace_back("uncounted_segments", counter_.UncountedSegments());
  {
    absl::MutexLock lock(&versions_.mutex());
    figures.emplace_back("retired_generations", versions_.RetiredGenerationsLocked().size());
  }
  AddWorkFigures(&figures);
  return figures;
}

void Engine::AddTreeFigures(const SuperVersion& state, const ValueSpace& values,
                            Figures* figures) const {
  uint64_t buffered = versions_.buffer_memory().kept() + state.active->bytes_used();
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) buffered += buffer->bytes_used();
  const Version& version = *state.version;
  uint64_t entries = 0;
  for (const Run* run : version.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      entries += segment->info().entries;
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
                     {"range_tombstone_fragments",
                      version.range_tombstones().size() + state.buffered_tombstones->size()},
                     {"namespaces", state.namespaces.entries().size()}};
  figures->insert(figures->end(), more.begin(), more.end());
}

StoreObservation Engine::Observe() const {
  StoreObservation seen;
  seen.figures = {{"sequence", versions_.visible()},
                  {"durable_sequence", log_->durable_sequence()},
                  {"gets", reader_.gets()},
                  {"writes", pipeline_.writes()},
                  {"write_conflicts", pipeline_.conflicts()},
                  {"expired_keys", sweeper_.expired_keys()}};
  {
    const SuperVersions::Pin state = versions_.Acquire();
    AddTreeFigures(*state, KnownValueSpaceOf(*state->version), &seen.figures);
    for (const Level& level : state->version->levels()) {
      uint64_t segments = 0;
      for (const Run& run : level.runs) {
        segments += run.segments.size();
        for (const std::shared_ptr<Segment>& segment : run.segments)
          seen.damaged_segments += segment->is_damaged() ? 1 : 0;
      }
      seen.segments_by_level.push_back(segments);
    }
    seen.namespaces =
        EstimateNamespaces(*state, estimators_.counts.Estimate(*state, versions_.visible()));
  }
  AddWorkFigures(&seen.figures);
  const SteadyTime now = SteadyNow();
  seen.syncs = log_->sync_times().times();
  seen.sync_busy_nanos = log_->sync_times().BusyNanos(now);
  seen.sync_wait_nanos = log_->sync_times().WaitNanos(now);
  seen.flushes = flusher_.times();
  seen.merges = compactor_.times();
  seen.flush_pressure = pipeline_.flush_pressure();
  seen.merge_pressure = pipeline_.merge_pressure();
  seen.disk_is_full =
      log_->lacks_space() || pipeline_.flush_lacks_space() || compactor_.lacks_space();
  return seen;
}

RangeSize Engine::EstimateSize(NamespaceId space, std::string_view lower,
                               std::string_view upper) const {
  const SuperVersions::Pin state = versions_.Acquire();
  const std::optional<NamespaceGeneration> generation = state->namespaces.Generation(space);
  if (!generation.has_value()) return {};
  const TreeKey begin(*generation, lower);
  const std::string end =
      upper.empty() ? EndTreeKey(*generation) : std::string(TreeKey(*generation, upper).view());
  const RangeEstimate estimate = EstimateRange(*state->version, begin.view(), end);
  return {.keys = static_cast<uint64_t>(estimate.entries),
          .bytes = static_cast<uint64_t>(estimate.bytes),
          .plain_value_bytes = static_cast<uint64_t>(estimate.plain_bytes),
          .stored_value_bytes = static_cast<uint64_t>(estimate.stored_bytes)};
}

void Engine::AddWorkFigures(Figures* figures) const {
  const LogStatistics log = log_->statistics();
  const SegmentStatistics& segments = caches_.statistics;
  const DataBound::Known data = data_bound_.Read();
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
                     {"compaction_parts", compactor_.parts()},
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
                     {"data_bytes_counted", data.counted},
                     {"data_bytes_at_most", data.at_most},
                     {"pressure_percent", static_cast<uint64_t>(pipeline_.pressure() * 100)}};
  figures->insert(figures->end(), more.begin(), more.end());
  const ChangeFigures changes = version_set_.changes().Figures();
  const Figures retained{{"change_first", changes.first},
                         {"change_files", changes.files},
                         {"change_bytes", changes.file_bytes},
                         {"change_memory_bytes", changes.memory_bytes},
                         {"changes_given_up", changes.given_up},
                         {"feeds", version_set_.changes().feeds().All()->size()},
                         {"lost_feeds", changes.lost_feeds}};
  figures->insert(figures->end(), retained.begin(), retained.end());
  figures->insert(figures->end(), by_reason.begin(), by_reason.end());
}

}  // namespace varve
