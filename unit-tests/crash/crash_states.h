// Every state in which a crash could leave a store, made from one recorded run of a Workload: each
// beginning of the run's changes to the disk, times what a kill of the process or a power cut then
// leaves of what was not synced (SimulatedDisk::CutPower).
//
// A state is good if the store opens on it, whatever the machine's clock shows then; holds what was
// acknowledged and nothing but what was sent, up to the end of some batch, in all ways of reading
// it; shows no key that somebody has seen expired, and counts none that is about to; shows the same
// when it is opened again, also when recovery itself crashed at any point; takes writes; and leaves
// no file behind that belongs to nobody. Seed and index name a state for good: the run repeats
// itself to the letter.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "unit-tests/crash/history.h"
#include "unit-tests/testing/simulated_disk.h"

namespace varve::testing {

class CrashStates {
 public:
  // States of each beginning: a kill, then power cuts.
  static constexpr uint64_t kStatesPerChange = 8;

  struct Counts {
    uint64_t distinct = 0;  // states of the disk that were opened and found good
    uint64_t kills = 0;     // of these, left by the process alone
    // Further ones, left by crashes of recoveries and of what was written after them.
    uint64_t in_recovery = 0;
  };

  // Records a run of `steps` things done to a store.
  CrashStates(uint64_t seed, int steps);

  // Returns what was wrong with the run itself, without any crash.
  [[nodiscard]] const absl::Status& status() const { return status_; }
  uint64_t size() const { return (trace_.size() + 1) * kStatesPerChange; }
  // Returns a hash of everything that was written, in order.
  uint64_t Fingerprint() const;
  const std::vector<DiskEvent>& trace() const { return trace_; }
  // Returns what was done in the run (Workload::done).
  const std::map<std::string, uint64_t>& done() const { return done_; }
  // The last `count` changes before the state's crash, and what had been acknowledged and sent by
  // then. For people.
  std::string Describe(uint64_t index, uint64_t count) const;

  // Looks at states until `most` distinct ones were good, or all were seen. With fewer, they are
  // spread over the run. The error of the first bad one names its seed and index.
  [[nodiscard]] absl::Status CheckAll(uint64_t most, Counts* counts);
  // Looks at one.
  [[nodiscard]] absl::Status Check(uint64_t index);

 private:
  struct State {
    SimulatedDisk disk;
    History::Bounds bounds;
    SequenceNumber least_after_power_cut;
    uint64_t index;
  };

  State MakeState(const SimulatedDisk& at_change, uint64_t index) const;
  // `deep`: counts how many crashes of its recovery were tried.
  absl::Status CheckState(const State& state, uint64_t* deep) const;
  absl::Status CheckRecoveries(const State& state, const std::vector<DiskEvent>& trace,
                               const History& history, uint64_t* deep) const;

  const uint64_t seed_;
  const int steps_;
  absl::Status status_;
  SimulatedDisk first_;
  History history_;
  std::map<std::string, uint64_t> done_;
  std::vector<DiskEvent> trace_;
};

}  // namespace varve::testing
