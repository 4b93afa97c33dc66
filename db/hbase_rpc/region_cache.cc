#include "db/hbase_rpc/region_cache.h"

#include <iterator>
#include <utility>

#include "util/base/assert.h"

namespace varve {

RegionPtr RegionCache::Find(std::string_view table, std::string_view row) const {
  const auto regions = tables_.find(table);
  if (regions == tables_.end()) return nullptr;
  const auto behind = regions->second.upper_bound(row);
  if (behind == regions->second.begin()) return nullptr;
  const RegionPtr& region = std::prev(behind)->second;
  return region->Holds(row) ? region : nullptr;
}

RegionPtr RegionCache::FindBefore(std::string_view table, std::string_view row) const {
  const auto regions = tables_.find(table);
  if (regions == tables_.end()) return nullptr;
  const auto behind = row.empty() ? regions->second.end() : regions->second.lower_bound(row);
  if (behind == regions->second.begin()) return nullptr;
  const RegionPtr& region = std::prev(behind)->second;
  const bool reaches_row = region->end.empty() || (!row.empty() && row <= region->end);
  return reaches_row ? region : nullptr;
}

void RegionCache::Insert(std::string_view table, RegionPtr region) {
  VARVE_ASSERT(region->end.empty() || region->start < region->end);
  Regions& regions = tables_[std::string(table)];
  auto first = regions.upper_bound(region->start);
  if (first != regions.begin() && std::prev(first)->second->IsBelowEnd(region->start)) --first;
  const auto last = region->end.empty() ? regions.end() : regions.lower_bound(region->end);
  regions.erase(first, last);
  std::string start = region->start;
  regions.emplace(std::move(start), std::move(region));
}

void RegionCache::Remove(std::string_view table, const RegionPtr& region) {
  const auto regions = tables_.find(table);
  if (regions == tables_.end()) return;
  const auto found = regions->second.find(region->start);
  if (found != regions->second.end() && found->second == region) regions->second.erase(found);
}

size_t RegionCache::size() const {
  size_t count = 0;
  for (const auto& [table, regions] : tables_) count += regions.size();
  return count;
}

}  // namespace varve
