// AwayRegions are the regions that have not answered for a while: their server is dead, silent or
// too busy, or they are on their way to another one, or open nowhere. Those who make calls look
// here before they let a region have what many regions share.
//
// Thread-safety: All functions are thread-safe. A look costs one load while no region is away.
// Invariants: The regions of a table do not overlap.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/hbase_rpc/region_cache.h"

namespace varve {

class AwayRegions {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A region that moves or splits answers again within this time, as a rule.
  static constexpr std::chrono::seconds kPatience{3};

  // The region did not do what it was asked for.
  void NoteFailure(std::string_view table, const Region& region, Time now) {
    const absl::MutexLock lock(&mutex_);
    Spans& spans = tables_[std::string(table)];
    const Time since = TakeOut(&spans, region, now);
    spans.emplace(region.start, Span{region.end, since});
    has_any_ = true;
  }

  // The region has answered.
  void NoteAnswer(std::string_view table, const Region& region) {
    if (!has_any_.load(std::memory_order_relaxed)) return;
    const absl::MutexLock lock(&mutex_);
    const auto spans = tables_.find(table);
    if (spans == tables_.end()) return;
    (void)TakeOut(&spans->second, region, Time::max());
    if (spans->second.empty()) tables_.erase(spans);
    has_any_ = !tables_.empty();
  }

  bool has_any() const { return has_any_.load(std::memory_order_relaxed); }

  // Returns whether the row lies in a region that has not answered for kPatience.
  bool Holds(std::string_view table, std::string_view row, Time now) const {
    if (!has_any()) return false;
    const absl::MutexLock lock(&mutex_);
    const auto spans = tables_.find(table);
    if (spans == tables_.end()) return false;
    const auto behind = spans->second.upper_bound(row);
    if (behind == spans->second.begin()) return false;
    const Span& span = std::prev(behind)->second;
    return (span.end.empty() || row < span.end) && now - span.since >= kPatience;
  }

 private:
  struct Span {
    std::string end;  // empty: that of the table
    Time since;       // the first failure behind the last answer
  };
  // By the rows that they begin with.
  using Spans = std::map<std::string, Span, std::less<>>;

  // Takes out what the region overlaps, as regions are split and merged, and returns the earliest
  // time among `now` and theirs.
  static Time TakeOut(Spans* spans, const Region& region, Time now) {
    Time since = now;
    auto first = spans->upper_bound(region.start);
    if (first != spans->begin()) {
      const std::string& end = std::prev(first)->second.end;
      if (end.empty() || region.start < end) --first;
    }
    const auto last = region.end.empty() ? spans->end() : spans->lower_bound(region.end);
    for (auto span = first; span != last; ++span) since = std::min(since, span->second.since);
    spans->erase(first, last);
    return since;
  }

  std::atomic<bool> has_any_{false};
  mutable absl::Mutex mutex_;
  std::map<std::string, Spans, std::less<>> tables_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
