// A set of byte strings as disjoint ranges [begin, end) in order (the field's interval set): ranges
// that overlap or touch become one. An empty end means no end. Not thread-safe. Finding and adding
// take logarithmic time, but for the ranges that go.
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
  static constexpr size_t kBytesPerRange = 64;  // beside its own

  void Add(std::string_view begin, std::string_view end);
  // Makes every two neighbours one, with what lies between them.
  void JoinNeighbours();
  void Clear();

  // The range that holds `key`; views live until the next change.
  std::optional<Range> Find(std::string_view key) const;
  const Ranges& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  size_t bytes() const { return bytes_; }

 private:
  Ranges ranges_;
  size_t bytes_ = 0;
};

}  // namespace varve
