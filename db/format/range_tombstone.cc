#include "db/format/range_tombstone.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "util/base/assert.h"

namespace varve {

void CoalesceRangeTombstones(std::vector<RangeTombstone>* tombstones) {
  std::erase_if(*tombstones,
                [](const RangeTombstone& tombstone) { return tombstone.begin >= tombstone.end; });
  std::sort(tombstones->begin(), tombstones->end(),
            [](const RangeTombstone& a, const RangeTombstone& b) {
              return std::tie(a.sequence, a.begin) < std::tie(b.sequence, b.begin);
            });
  size_t kept = 0;
  for (size_t i = 0; i < tombstones->size(); ++i) {
    RangeTombstone& current = (*tombstones)[i];
    if (kept > 0) {
      RangeTombstone& last = (*tombstones)[kept - 1];
      if (last.sequence == current.sequence && current.begin <= last.end) {
        if (last.end < current.end) last.end = std::move(current.end);
        continue;
      }
    }
    if (kept != i) (*tombstones)[kept] = std::move(current);
    ++kept;
  }
  tombstones->resize(kept);
  std::sort(tombstones->begin(), tombstones->end(),
            [](const RangeTombstone& a, const RangeTombstone& b) {
              return std::tie(a.begin, b.sequence) < std::tie(b.begin, a.sequence);
            });
}

RangeTombstoneList::RangeTombstoneList(std::vector<RangeTombstone> tombstones)
    : tombstones_(std::move(tombstones)) {
  CoalesceRangeTombstones(&tombstones_);
  // The loop passes all boundaries in order: `depth` tombstones cover the stretch behind the last
  // one passed.
  std::vector<std::pair<std::string_view, int>> boundaries;
  boundaries.reserve(tombstones_.size() * 2);
  for (const RangeTombstone& tombstone : tombstones_) {
    boundaries.emplace_back(tombstone.begin, 1);
    boundaries.emplace_back(tombstone.end, -1);
  }
  std::sort(boundaries.begin(), boundaries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  int depth = 0;
  for (size_t i = 0; i < boundaries.size();) {
    const std::string_view begin = boundaries[i].first;
    for (; i < boundaries.size() && boundaries[i].first == begin; ++i)
      depth += boundaries[i].second;
    VARVE_ASSERT(depth >= 0);
    if (depth > 0)
      fragments_.push_back({std::string(begin), std::string(boundaries[i].first), kNoSequence});
  }
  VARVE_ASSERT(depth == 0);
  HangSequences();
}

void RangeTombstoneList::HangSequences() {
  const size_t leaves = fragments_.size();
  const auto fragment_at = [this](std::string_view boundary) {
    return static_cast<size_t>(std::lower_bound(fragments_.begin(), fragments_.end(), boundary,
                                                [](const Fragment& fragment, std::string_view key) {
                                                  return std::string_view(fragment.begin) < key;
                                                }) -
                               fragments_.begin());
  };
  if (leaves == tombstones_.size()) {
    // There are as many fragments as tombstones: if none overlap, fragment i is tombstone i.
    bool disjoint = true;
    for (size_t i = 0; disjoint && i < leaves; ++i) {
      disjoint =
          fragments_[i].begin == tombstones_[i].begin && fragments_[i].end == tombstones_[i].end;
    }
    if (disjoint) {
      for (size_t i = 0; i < leaves; ++i) fragments_[i].newest = tombstones_[i].sequence;
      return;
    }
  }
  nodes_.resize(2 * leaves);
  for (const RangeTombstone& tombstone : tombstones_) {
    size_t left = fragment_at(tombstone.begin) + leaves;
    size_t right = fragment_at(tombstone.end) + leaves;
    for (; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) nodes_[left++].push_back(tombstone.sequence);
      if (right % 2 == 1) nodes_[--right].push_back(tombstone.sequence);
    }
  }
  for (std::vector<SequenceNumber>& node : nodes_)
    std::sort(node.begin(), node.end(), std::greater<>());
  for (size_t i = 0; i < leaves; ++i) {
    for (size_t node = i + leaves; node > 0; node /= 2) {
      if (!nodes_[node].empty())
        fragments_[i].newest = std::max(fragments_[i].newest, nodes_[node].front());
    }
  }
}

size_t RangeTombstoneList::Find(std::string_view tree_key) const {
  const auto behind = std::upper_bound(
      fragments_.begin(), fragments_.end(), tree_key,
      [](std::string_view key, const Fragment& fragment) { return key < fragment.begin; });
  if (behind == fragments_.begin() || tree_key >= std::prev(behind)->end) return fragments_.size();
  return static_cast<size_t>(behind - fragments_.begin()) - 1;
}

SequenceNumber RangeTombstoneList::SequenceInFragment(size_t index, SequenceNumber at) const {
  VARVE_ASSERT(index < fragments_.size());
  const SequenceNumber newest = fragments_[index].newest;
  if (newest <= at) [[likely]]
    return newest;
  SequenceNumber found = kNoSequence;
  if (nodes_.empty()) return found;
  for (size_t node = index + fragments_.size(); node > 0; node /= 2) {
    const std::vector<SequenceNumber>& sequences = nodes_[node];
    const auto not_newer =
        std::lower_bound(sequences.begin(), sequences.end(), at, std::greater<>());
    if (not_newer != sequences.end()) found = std::max(found, *not_newer);
  }
  return found;
}

SequenceNumber RangeTombstoneList::CoveringSequence(std::string_view tree_key,
                                                    SequenceNumber at) const {
  if (fragments_.empty()) return kNoSequence;
  const size_t index = Find(tree_key);
  return index == fragments_.size() ? kNoSequence : SequenceInFragment(index, at);
}

const RangeTombstoneList::Fragment* RangeTombstoneList::Covering(std::string_view tree_key,
                                                                 SequenceNumber at) const {
  if (fragments_.empty()) return nullptr;
  const size_t index = Find(tree_key);
  if (index == fragments_.size() || SequenceInFragment(index, at) == kNoSequence) return nullptr;
  return &fragments_[index];
}

}  // namespace varve
