// RegionCache holds which server has which part of which table, as far as it was looked up.
//
// Thread-safety: One thread at a time uses an object. A Region never changes and may go anywhere.
// Invariants: The regions of a table do not overlap.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace varve {

struct Region {
  // As HBase names it: table,start,id.hash.
  std::string name;
  // The rows of [start, end); an empty end is the end of the table.
  std::string start;
  std::string end;
  // host:port; empty: it was open nowhere
  std::string server;

  bool Holds(std::string_view row) const { return row >= start && IsBelowEnd(row); }
  bool IsBelowEnd(std::string_view row) const { return end.empty() || row < end; }
};

using RegionPtr = std::shared_ptr<const Region>;

class RegionCache {
 public:
  // The region that holds `row`; null where it is not known.
  RegionPtr Find(std::string_view table, std::string_view row) const;
  // The region that holds the rows just before `row`, or the last ones of the table where `row` is
  // empty; null where it is not known.
  RegionPtr FindBefore(std::string_view table, std::string_view row) const;

  // Takes in what was looked up; regions that it overlaps are of the past.
  void Insert(std::string_view table, RegionPtr region);
  // Forgets a region that was found wrong. One that was looked up since stays.
  void Remove(std::string_view table, const RegionPtr& region);
  void Clear() { tables_.clear(); }

  size_t size() const;

 private:
  // By their starts.
  using Regions = std::map<std::string, RegionPtr, std::less<>>;

  std::map<std::string, Regions, std::less<>> tables_;
};

}  // namespace varve
