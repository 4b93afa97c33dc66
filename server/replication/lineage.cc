#include "server/replication/lineage.h"

#include <algorithm>

namespace varve {
namespace {

constexpr size_t kMostPast = 1000;

}  // namespace

std::vector<HistoryEnd> Lineage::Ends() const {
  std::vector<HistoryEnd> ends = past;
  ends.push_back({current, newest});
  SequenceNumber least = newest;
  for (auto each = ends.rbegin(); each != ends.rend(); ++each)
    each->end = least = std::min(least, each->end);
  return ends;
}

std::optional<SequenceNumber> CommonVersion(const Lineage& one, const Lineage& other) {
  const std::vector<HistoryEnd> ends = one.Ends(), other_ends = other.Ends();
  for (auto mine = ends.rbegin(); mine != ends.rend(); ++mine) {
    const auto theirs = std::find_if(other_ends.begin(), other_ends.end(),
                                     [&](const HistoryEnd& each) { return each.id == mine->id; });
    if (theirs != other_ends.end()) return std::min(mine->end, theirs->end);
  }
  return std::nullopt;
}

Lineage Promoted(Lineage lineage, uint64_t next) {
  lineage.past = lineage.Ends();
  if (lineage.past.size() > kMostPast) lineage.past.erase(lineage.past.begin());
  lineage.current = next;
  return lineage;
}

}  // namespace varve
