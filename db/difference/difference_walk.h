// The difference walk finds the keys in which two states differ (include/varve/difference.h). It
// looks at keys of which something was written since the states parted (db/difference/lineage.h),
// at those that were deleted by ranges since, and at those that have expired between the instants
// of the two, and compares the two states there. Where the states share nothing, it looks at all
// keys.
//
// Time alone changes what a state shows: a key may expire between the instants without any write.
// Either the sweeper has removed such a key, by a write behind the point at which the states
// parted, or the expiry index still has its entry. If no namespace sees the generation that the
// states share any more, the sweeper removes nothing there, and the walk looks at all keys.
//
// Thread-safety: one thread at a time uses a walk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/difference/touched_keys.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/difference.h"
#include "varve/iterator.h"
#include "varve/options.h"

namespace varve {

class DifferenceWalk final : public DifferenceIterator {
 public:
  // Returns a cursor over the keys of one of the states.
  using Open = std::function<std::unique_ptr<Iterator>(bool with_values)>;
  struct Side {
    Open open;
    std::unique_ptr<Iterator> keys;    // without values
    std::unique_ptr<Iterator> values;  // null: none was needed
  };
  // The candidates are the keys that the walk looks at.
  struct Candidates {
    std::unique_ptr<TouchedKeys> touched;  // null: none
    std::vector<UserKeyRange> ranges;      // disjoint, ascending: all keys in them
    std::vector<std::string> expired;      // ascending
  };

  DifferenceWalk(Open a, Open b, Candidates candidates, std::string_view lower);

  bool Next(size_t most_steps) override;
  std::string_view key() const override { return candidate_; }
  bool AtEnd() const override { return at_end_; }
  std::string_view position() const override { return position_; }
  SequenceNumber durable_after() const override;
  absl::Status status() const override { return status_; }

 private:
  enum class Search : uint8_t { kFound, kNone, kSpent };

  // Puts the first candidate at or behind the position into candidate_. kSpent: no step is left,
  // and the next call goes on. kNone: there is no candidate, or the status says why none was found.
  Search FindCandidate(size_t* steps);
  // Replaces `*first` by the first key in a range if that comes before it; sets the status if that
  // can't be read. Returns false once no step is left.
  bool ConsiderRanges(std::optional<std::string>* first, size_t* steps);
  // Returns whether the states differ in candidate_; sets the status if that can't be read.
  bool Differs();
  bool ValuesDiffer();
  // Moves the cursor to the first key at or behind `target`; it never moves back.
  void SeekTo(Iterator* keys, std::string_view target);

  Side a_, b_;
  const Candidates candidates_;
  size_t next_range_ = 0, next_expired_ = 0;
  bool begun_ = false;
  std::string position_;
  std::string candidate_;
  bool at_end_ = false;
  absl::Status status_;
};

// The parts of the engine that a walk needs. They outlive it.
struct DifferenceParts {
  SuperVersions* versions = nullptr;
  const LogView* log = nullptr;
  std::function<std::unique_ptr<Iterator>(const ReadOptions&, std::string_view lower,
                                          std::string_view upper)>
      new_iterator;
};

// Returns the walk over the keys of [lower, upper) (empty: no end). Returns NoSuchNamespace if a
// snapshot does not show its namespace.
// Requires: the engine gave the snapshots.
[[nodiscard]] absl::StatusOr<std::unique_ptr<DifferenceIterator>> NewDifferenceWalk(
    const DifferenceParts& parts, const ComparedState& a, const ComparedState& b,
    std::string_view lower, std::string_view upper);

}  // namespace varve
