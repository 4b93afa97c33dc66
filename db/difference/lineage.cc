#include "db/difference/lineage.h"

#include <algorithm>

namespace varve {

std::vector<LineageLevel> LineageOf(NamespaceGeneration generation, SequenceNumber at,
                                    const NamespaceForks& forks) {
  std::vector<LineageLevel> lineage = {{generation, at}};
  for (const NamespaceFork* fork = forks.Of(generation); fork != nullptr;
       fork = forks.Of(fork->parent))
    lineage.push_back({fork->parent, fork->fork_point});
  return lineage;
}

Meeting MeetingOf(const std::vector<LineageLevel>& a, const std::vector<LineageLevel>& b) {
  Meeting meeting;
  for (const LineageLevel& level : a) {
    const auto same = std::find_if(b.begin(), b.end(), [&](const LineageLevel& other) {
      return other.generation == level.generation;
    });
    if (same == b.end()) {
      meeting.levels.push_back({level.generation, kNoSequence});
      continue;
    }
    for (auto younger = b.begin(); younger != same; ++younger)
      meeting.levels.push_back({younger->generation, kNoSequence});
    meeting.related = true;
    meeting.shared = level.generation;
    meeting.levels.push_back({level.generation, std::min(level.up_to, same->up_to)});
    return meeting;
  }
  return meeting;
}

}  // namespace varve
