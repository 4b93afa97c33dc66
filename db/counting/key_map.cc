#include "db/counting/key_map.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "db/counting/buffer_estimates.h"
#include "db/version/range_estimate.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr size_t kSamples = 256;               // fences that are looked at to find groups
constexpr size_t kMostGroupsOfOne = 24;        // groups that one group is divided into
constexpr double kSmallestShare = 1.0 / 1024;  // of a group's bytes that a group within it has
constexpr std::string_view kSeparators = ":/";

// Returns the part of the tree key up to the first separator behind `begin`, with it.
std::optional<std::string_view> GroupOf(std::string_view tree_key, size_t begin) {
  const size_t at = tree_key.find_first_of(kSeparators, begin);
  if (at == std::string_view::npos) return std::nullopt;
  return tree_key.substr(0, at + 1);
}

// Returns the end of the tree keys that begin with the group's.
std::string EndOf(std::string_view group) {
  if (group.size() == kGenerationSize) return EndTreeKey(GenerationOf(group));
  std::string end(group);
  ++end.back();  // a separator, which is not the last byte
  return end;
}

uint64_t NotNegative(double value) { return value > 0 ? static_cast<uint64_t>(value) : 0; }

// One mapping of one super version.
class Mapping {
 public:
  Mapping(const SuperVersion& state, const GroupCounts& buffered)
      : state_(state), buffered_(buffered.groups()) {}

  // Fills the map in, but for what it says of write buffers.
  void Map(size_t most_groups, KeyMap* result);

 private:
  // A group that may be divided.
  struct Open {
    KeyGroup* group = nullptr;
    NamespaceGeneration generation = kNoGeneration;
    bool operator<(const Open& other) const { return group->bytes < other.group->bytes; }
  };
  using Weights = absl::btree_map<std::string, double>;  // about the bytes, by tree key

  // Returns the group's size.
  KeyGroup Measure(std::string_view tree_key) const;
  // Returns the groups within `tree_key` that fences, segments and buffers name.
  Weights FindWithin(std::string_view tree_key, uint64_t bytes) const;
  std::vector<KeyGroup> Divide(std::string_view tree_key, uint64_t bytes) const;

  const SuperVersion& state_;
  const absl::btree_map<std::string, KeyCounts, std::less<>>& buffered_;
};

KeyGroup Mapping::Measure(std::string_view tree_key) const {
  const RangeEstimate stored = EstimateRange(*state_.version, tree_key, EndOf(tree_key));
  const auto added = buffered_.find(tree_key);
  const KeyCounts more = added == buffered_.end() ? KeyCounts() : added->second;
  return {.prefix = std::string(UserKeyOf(tree_key)),
          .keys = NotNegative(stored.entries + static_cast<double>(more.keys)),
          .bytes = NotNegative(stored.bytes + static_cast<double>(more.bytes))};
}

Mapping::Weights Mapping::FindWithin(std::string_view tree_key, uint64_t bytes) const {
  const std::string end = EndOf(tree_key);
  Weights weights;
  const auto note = [&](std::string_view key, double weight) {
    if (!key.starts_with(tree_key)) return;
    if (const auto group = GroupOf(key, tree_key.size())) weights[std::string(*group)] += weight;
  };
  const auto each_segment = [&](const auto& visit) {
    for (const Run* const run : state_.version->runs()) {
      for (size_t i = run->IndexOf(tree_key); i < run->segments.size(); ++i) {
        if (!end.empty() && run->segments[i]->info().smallest >= end) break;
        visit(*run->segments[i]);
      }
    }
  };
  size_t fences = 0;
  each_segment([&](const Segment& segment) { fences += segment.FencesBetween(tree_key, end); });
  const size_t stride = 1 + fences / kSamples;
  const double weight = static_cast<double>(bytes) * static_cast<double>(stride) /
                        static_cast<double>(std::max<size_t>(fences, 1));
  // A group that a segment begins or ends with is worth a look where fences do not name it.
  const double of_end = static_cast<double>(bytes) * kSmallestShare;
  each_segment([&](const Segment& segment) {
    segment.VisitFences(tree_key, end, stride, [&](std::string_view key) { note(key, weight); });
    note(segment.info().smallest, of_end);
    note(segment.info().largest, of_end);
  });
  // The first entry behind a group's own is of a group within it, whose entries follow it.
  auto at = buffered_.upper_bound(tree_key);
  while (at != buffered_.end() && at->first.starts_with(tree_key)) {
    note(at->first, static_cast<double>(at->second.bytes));
    at = buffered_.lower_bound(EndOf(at->first));
  }
  return weights;
}

std::vector<KeyGroup> Mapping::Divide(std::string_view tree_key, uint64_t bytes) const {
  std::vector<std::pair<double, std::string>> found;
  const double least = static_cast<double>(bytes) * kSmallestShare;
  for (auto& [group, weight] : FindWithin(tree_key, bytes)) {
    if (weight >= least) found.emplace_back(weight, group);
  }
  std::sort(found.rbegin(), found.rend());
  if (found.size() > kMostGroupsOfOne) found.resize(kMostGroupsOfOne);
  std::vector<KeyGroup> groups;
  for (const auto& [weight, group] : found) {
    KeyGroup measured = Measure(group);
    if (static_cast<double>(measured.bytes) >= std::max(least, 1.0))
      groups.push_back(std::move(measured));
  }
  std::sort(groups.begin(), groups.end(), [](const KeyGroup& a, const KeyGroup& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.prefix < b.prefix;
  });
  return groups;
}

void Mapping::Map(size_t most_groups, KeyMap* result) {
  KeyMap& map = *result;
  for (const Run* const run : state_.version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      map.segment_bytes += segment->info().file_size;
      if (segment->has_index()) map.known_segment_bytes += segment->info().file_size;
    }
  }
  std::vector<std::pair<NamespaceKeys, NamespaceGeneration>> spaces;
  for (const ManifestNamespace& entry : state_.namespaces.entries()) {
    KeyGroup all = Measure(FirstTreeKey(entry.generation));
    if (all.bytes == 0) continue;
    map.bytes += all.bytes;
    spaces.push_back({{.id = entry.id,
                       .name = state_.namespaces.ShownNameOf(entry.id),
                       .keys = std::move(all),
                       .grouping = state_.namespaces.GroupingOf(entry.id)},
                      entry.generation});
  }
  std::sort(spaces.begin(), spaces.end(),
            [](const auto& a, const auto& b) { return a.first.keys.bytes > b.first.keys.bytes; });
  if (spaces.size() > most_groups) spaces.resize(most_groups);
  map.namespaces.reserve(spaces.size());  // the groups stay where they are
  std::priority_queue<Open> open;
  for (auto& [space, generation] : spaces) {
    map.namespaces.push_back(std::move(space));
    open.push({&map.namespaces.back().keys, generation});
  }
  for (size_t groups = spaces.size(); !open.empty() && groups < most_groups;) {
    const auto [group, generation] = open.top();
    open.pop();
    if (static_cast<double>(group->bytes) < static_cast<double>(map.bytes) * kSmallestShare) break;
    group->groups = Divide(TreeKey(generation, group->prefix).view(), group->bytes);
    groups += group->groups.size();
    for (KeyGroup& within : group->groups) open.push({&within, generation});
  }
}

}  // namespace

void GroupCounts::Add(std::string_view tree_key, const KeyCounts& change) {
  std::string_view group = tree_key.substr(0, kGenerationSize);
  for (size_t depth = 0; depth <= kMostDepth; ++depth) {
    auto place = groups_.find(group);
    if (place == groups_.end()) {
      if (of_depth_[depth] == MostOfDepth(depth)) return;
      ++of_depth_[depth];
      place = groups_.try_emplace(std::string(group)).first;
    }
    place->second += change;
    const std::optional<std::string_view> next = GroupOf(tree_key, group.size());
    if (!next.has_value()) return;
    group = *next;
  }
}

void GroupCounts::Add(const GroupCounts& other, double scale) {
  for (const auto& [group, counts] : other.groups_) groups_[group] += Scaled(counts, scale);
}

GroupCounts KeyMapper::Buffered(const SuperVersion& state, SequenceNumber visible, KeyMap* map) {
  GroupCounts sum;
  absl::MutexLock lock(&mutex_);
  const WalkedRecords walked = walks_.Round(
      state, visible,
      [](const RecordView& record, const RecordView* previous, uint64_t weight,
         GroupCounts* counts) {
        counts->Add(record.key, Scaled(ChangeOf(record, previous), static_cast<double>(weight)));
      },
      [&](const GroupCounts& counts, double scale) { sum.Add(counts, scale); });
  map->buffer_records = walked.all;
  map->known_buffer_records = walked.walked;
  return sum;
}

KeyMap KeyMapper::Map(const SuperVersion& state, SequenceNumber visible, size_t most_groups) {
  VARVE_ASSERT(most_groups > 0);
  KeyMap map;
  const GroupCounts buffered = Buffered(state, visible, &map);
  Mapping(state, buffered).Map(most_groups, &map);
  return map;
}

}  // namespace varve
