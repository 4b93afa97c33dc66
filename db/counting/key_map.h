// The key mapper finds out how many bytes groups of keys take, without a scan. A group is the keys
// with the same beginning up to a ':' or '/'.
//
//   1. Fences are one key for each block of data, so evenly chosen ones of a range name every group
//      that has a good part of it. The first and the last key of each segment are known always.
//   2. A range estimate (db/version/range_estimate.h) gives the size of each group that was found.
//   3. What is still in write buffers is added; the mapper walks it in small steps.
//   4. The largest groups are divided in the same way, until there are as many as asked for.
//
// Thread-safety: all threads may use an object at once; mutex_ is held over a walk in memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/synchronization/mutex.h"
#include "db/counting/buffer_walks.h"
#include "db/format/key_counts.h"
#include "db/version/super_version.h"
#include "varve/store_survey.h"

namespace varve {

// The group counts say what records add to the groups that they are in, and to all groups around
// these. The keys of groups() are tree keys: generation and prefix.
class GroupCounts {
 public:
  // Groups within groups are told apart to this depth, and so many groups of each depth; what is
  // more counts to the groups around it alone.
  static constexpr size_t kMostDepth = 6;
  static constexpr size_t MostOfDepth(size_t depth) { return size_t{2000} >> depth; }

  void Add(std::string_view tree_key, const KeyCounts& change);
  void Add(const GroupCounts& other, double scale);

  const absl::btree_map<std::string, KeyCounts, std::less<>>& groups() const { return groups_; }

 private:
  absl::btree_map<std::string, KeyCounts, std::less<>> groups_;
  size_t of_depth_[kMostDepth + 1] = {};
};

class KeyMapper {
 public:
  // Records of write buffers that one call looks at closely.
  static constexpr uint64_t kMostAdded = 2'000;

  // Maps the keys of `state`, of write buffers up to the sequence `visible`.
  KeyMap Map(const SuperVersion& state, SequenceNumber visible, size_t most_groups)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns what the write buffers hold, and notes in `*map` how much of them was walked.
  GroupCounts Buffered(const SuperVersion& state, SequenceNumber visible, KeyMap* map)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  BufferWalks<GroupCounts, kMostAdded> walks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
