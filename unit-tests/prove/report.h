// What a run of `make prove` came to, as one table. A part that this machine doesn't allow has a
// line that says why.
//
// Thread-safety: a report belongs to one thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "unit-tests/prove/bit_flips.h"
#include "unit-tests/prove/failing_calls.h"
#include "unit-tests/prove/failover/failover.h"
#include "unit-tests/prove/failover/follower.h"
#include "unit-tests/prove/fleet.h"
#include "unit-tests/prove/lost_machines.h"
#include "unit-tests/prove/power_cuts.h"

namespace varve::prove {

class Report {
 public:
  void AddKills(const Figures& figures);
  void AddCuts(const absl::StatusOr<PowerFigures>& figures);
  void AddFlips(const absl::StatusOr<FlipFigures>& figures);
  void AddLosses(const LossFigures& figures);
  void AddFailovers(const FailoverFigures& with_sync, const FailoverFigures& without);
  void AddFollower(const FollowerFigures& figures);
  void AddCalls(const absl::StatusOr<FailureFigures>& figures);

  // Nothing was lost, torn or otherwise wrong.
  bool good() const { return complaints_.empty(); }
  std::string Text() const;

 private:
  // `remark` stands behind the row.
  void AddRow(const std::string& what, const Figures& figures, const std::string& remark = "");
  void AddMissing(const std::string& what, const absl::Status& why);

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<std::string> rows_;
  std::vector<std::string> notes_;
  std::vector<std::string> complaints_;
  std::chrono::milliseconds longest_start_{0};
};

}  // namespace varve::prove
