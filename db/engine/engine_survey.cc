// Engine: how the store lies in memory and on disk, for people.
#include <algorithm>

#include "db/engine/engine.h"

namespace varve {
namespace {

BufferSurvey SurveyOf(const WriteBuffer& buffer, bool is_full) {
  return {.bytes = buffer.bytes_used(), .records = buffer.entries(), .is_full = is_full};
}

// Returns the name of the namespace that the tree key is in; empty if it is gone.
std::string NamespaceOf(const NamespaceTable& namespaces, std::string_view tree_key) {
  const NamespaceGeneration generation = GenerationOf(tree_key);
  for (const ManifestNamespace& entry : namespaces.entries()) {
    if (entry.generation == generation) return namespaces.ShownNameOf(entry.id);
  }
  return "";
}

SegmentSurvey SurveyOf(const Segment& segment, const NamespaceTable& namespaces) {
  const SegmentInfo& info = segment.info();
  return {.number = info.number,
          .bytes = info.file_size,
          .referenced_bytes = info.referenced_bytes(),
          .records = info.entries,
          .tombstones = info.tombstones,
          .range_tombstones = info.range_tombstones,
          .oldest = info.smallest_sequence,
          .newest = info.largest_sequence,
          .first_namespace = NamespaceOf(namespaces, info.smallest),
          .first_key = std::string(UserKeyOf(info.smallest)),
          .last_namespace = NamespaceOf(namespaces, info.largest),
          .last_key = std::string(UserKeyOf(info.largest)),
          .is_damaged = segment.is_damaged(),
          .has_index = segment.has_index()};
}

}  // namespace

TreeSurvey Engine::SurveyTree(size_t most_segments) const {
  TreeSurvey survey;
  const std::optional<MergeUnderWay> merge = compactor_.under_way();
  if (merge.has_value()) {
    const std::chrono::duration<double> since = SteadyNow() - merge->began;
    survey.merge = MergeSurvey{.reason = std::string(NameOf(merge->reason)),
                               .segments = merge->segments.size(),
                               .bytes = merge->bytes,
                               .output_level = merge->output_level,
                               .parts = merge->parts,
                               .seconds = since.count()};
  }
  const SuperVersions::Pin state = versions_.Acquire();
  survey.buffers.push_back(SurveyOf(*state->active, /*is_full=*/false));
  for (const std::shared_ptr<WriteBuffer>& buffer : state->full)
    survey.buffers.push_back(SurveyOf(*buffer, /*is_full=*/true));
  size_t left = most_segments;
  for (const Level& level : state->version->levels()) {
    LevelSurvey& strata = survey.levels.emplace_back();
    for (const Run& run : level.runs) {
      RunSurvey& seen = strata.runs.emplace_back();
      seen.bytes = run.bytes();
      seen.segment_count = run.segments.size();
      for (size_t i = 0; i < run.segments.size() && left > 0; ++i, --left) {
        SegmentSurvey& segment =
            seen.segments.emplace_back(SurveyOf(*run.segments[i], state->namespaces));
        segment.is_merging =
            merge.has_value() &&
            std::binary_search(merge->segments.begin(), merge->segments.end(), segment.number);
      }
    }
  }
  return survey;
}

KeyMap Engine::MapKeys(size_t most_groups) {
  KeyMap map;
  {
    const SuperVersions::Pin state = versions_.Acquire();
    map = estimators_.keys.Map(*state, versions_.visible(), most_groups);
  }
  if (map.known_segment_bytes < map.segment_bytes) compactor_.WantIndexes();
  return map;
}

StorePositions Engine::Positions() const {
  StorePositions positions{.durable = log_.durable_sequence(),
                           .replayed_bytes = recovered_.log_bytes,
                           .stall_nanos = pipeline_.stall_nanos()};
  for (const Durability mode : {Durability::kAlways, Durability::kEverySecond, Durability::kNone})
    positions.newest_by_durability[static_cast<size_t>(mode)] = log_->last_sequence(mode);
  positions.visible = versions_.visible();
  const SuperVersions::Pin state = versions_.Acquire();
  const WriteBuffer& oldest = state->full.empty() ? *state->active : *state->full.back();
  positions.flushed = oldest.first_sequence() - 1;
  return positions;
}

}  // namespace varve
