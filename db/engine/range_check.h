// A range check finds out whether anything was written into a batch's ranges
// (WriteBatch::RequireRangeUnchanged) after the sequence of its conditions. It looks through what
// the write buffers took in since then, in the order of arrival and in steps, each of which goes on
// where the last one ended. The last step holds the commit lock and has little left to look at.
// Records that were flushed since then cannot be told apart any more: they count as written into
// the ranges.
//
// Thread-safety: one thread uses a check.
// Requires: Aim() is called with the commit lock held; Look() needs no lock.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "db/engine/commit.h"
#include "db/version/super_version.h"

namespace varve {

class RangeCheck {
 public:
  // `commit` outlives this; its generations may change until Look().
  explicit RangeCheck(const Commit& commit);

  bool empty() const { return commit_.range_conditions().empty(); }
  // The next Look() goes to `last`, of which `state` holds everything. Returns how many sequences
  // it goes through.
  SequenceNumber Aim(std::shared_ptr<const SuperVersion> state, SequenceNumber last);
  // False: something was written, or may have been.
  [[nodiscard]] bool Look();

 private:
  struct Part {
    const WriteBuffer* buffer;
    WriteBuffer::Position position;
  };
  // [lower, reach): `reach` is the furthest end of this range and those that begin before it.
  struct Range {
    std::string_view lower;
    std::string_view reach;
  };

  void SortRanges();
  bool Covers(std::string_view tree_key) const;
  bool Overlaps(std::string_view lower, std::string_view upper) const;

  const Commit& commit_;
  SequenceNumber checked_ = kMaxSequence;  // nothing was written up to here
  SequenceNumber aim_ = kNoSequence;
  bool known_ = true;  // everything between the two is in `parts_`
  std::shared_ptr<const SuperVersion> state_;
  std::vector<Part> parts_;  // newest first
  std::vector<Range> ranges_;
};

}  // namespace varve
