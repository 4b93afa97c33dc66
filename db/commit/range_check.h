// A range check finds out whether anything was written into a batch's ranges
// (WriteBatch::RequireRangeUnchanged) after the sequence of its conditions. It scans the records
// that the write buffers took in since then, in the order of arrival and in steps, each of which
// continues where the last one ended. The caller holds the commit lock for the last step, which has
// little left to scan. If a buffer was flushed since then, the ranges count as written into,
// because the order of arrival of its records is lost.
//
// Thread-safety: one thread uses a check.
// Requires: SetTarget() is called with the commit lock held; Scan() needs no lock.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "db/commit/commit.h"
#include "db/version/super_version.h"

namespace varve {

class RangeCheck {
 public:
  // Requires: `commit` outlives the check. Its generations may change until the first Scan().
  explicit RangeCheck(const Commit& commit);

  bool empty() const { return commit_.range_conditions().empty(); }
  // Makes the next Scan() end at `last`. Returns how many sequences it will scan.
  // Requires: `state` holds everything up to `last`.
  SequenceNumber SetTarget(std::shared_ptr<const SuperVersion> state, SequenceNumber last);
  // Scans up to the target. Returns false if something was written into a range, or may have been.
  [[nodiscard]] bool Scan();

 private:
  struct Part {
    const WriteBuffer* buffer;
    WriteBuffer::Position position;
  };
  // The range begins at `lower`; `reach` is the furthest end of it and of all ranges that begin
  // before it.
  struct Range {
    std::string_view lower;
    std::string_view reach;
  };

  void SortRanges();
  bool Covers(std::string_view tree_key) const;
  bool Overlaps(std::string_view lower, std::string_view upper) const;

  const Commit& commit_;
  SequenceNumber checked_ = kMaxSequence;  // nothing was written up to here
  SequenceNumber target_ = kNoSequence;
  bool known_ = true;  // everything between the two is in `parts_`
  std::shared_ptr<const SuperVersion> state_;
  std::vector<Part> parts_;  // newest first
  std::vector<Range> ranges_;
};

}  // namespace varve
