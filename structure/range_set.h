// The range set holds byte strings as disjoint ranges [begin, end) in order (the field's interval
// set). Ranges that overlap or touch become one; an empty end means no end. Finding and adding take
// logarithmic time, but for the ranges that are absorbed.
//
// Thread-safety: none; callers serialize.
// Invariants: ranges() are disjoint and do not touch; bytes() is the sum of their charges.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

class RangeSet {
 public:
  using Ranges = std::map<std::string, std::string, std::less<>>;  // begin to end
  struct Range {
    std::string_view begin;
    std::string_view end;
  };
  static constexpr size_t kBytesPerRange = 64;  // charge of a range beside its bytes

  void Add(std::string_view begin, std::string_view end);
  // Joins every two neighbouring ranges, with what lies between them.
  void JoinNeighbours();
  void Clear();

  // Returns the range that holds `key`. Its views are good until the next change.
  std::optional<Range> Find(std::string_view key) const;
  const Ranges& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  size_t bytes() const { return bytes_; }

 private:
  Ranges ranges_;
  size_t bytes_ = 0;
};

}  // namespace varve
