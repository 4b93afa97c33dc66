// The parts of engine_benchmark's table: processes that each measure the rows of one part with one
// engine (engine_rows.h), in a memory cgroup of the part's budget.
//
// A part runs when the first of its rows is asked for; the figures of its other rows are kept until
// they are. A part whose process is killed or fails keeps the figures of the rows that ended
// before, and the other parts go on. Where no cgroup can be made, the engines have equal budgets
// for their caches, and the kernel's pages are not limited; Limited() tells.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "benchmark/engine/engine_rows.h"
#include "benchmark/engine/peer.h"
#include "benchmark/report.h"

namespace varve::bench {

class Parts {
 public:
  // `rows` are all that are wanted. `command` is this program with the flags that each process
  // needs; a process gets --apart=PART|ENGINE|STEP and --memory_group beside them.
  Parts(std::vector<Row> rows, std::string directory, std::vector<std::string> command);

  // Returns the figures of the row; nothing, and the reason in `*why`, if it can't be measured.
  std::optional<Figures> Measure(const Row& row, const Engine& engine, std::string* why);

  // Returns whether a part failed; one that was killed has not.
  bool HasFailed() const { return has_failed_; }
  // Returns whether every part so far had its memory limited by the kernel.
  bool Limited() const { return limited_; }

 private:
  using Key = std::pair<std::string, std::string>;  // of a row, or a part, and an engine

  void Run(const Row& row, const Engine& engine);
  // Returns why the store could not be made; nothing if it was.
  std::string Prepare(const Row& row, const Engine& engine);
  // Returns what the process printed, also if it failed, and stores why it did.
  std::string Start(const Row& row, const Engine& engine, const std::string& step,
                    const std::string& group, std::string* failure);
  void NoteFailure(const Row& row, const Engine& engine, const std::string& reason);

  const std::vector<Row> rows_;
  const std::string directory_;
  const std::vector<std::string> command_;
  std::map<Key, std::deque<Figures>> known_;
  std::map<Key, std::string> failed_;  // parts, with the reason
  std::set<std::string> prepared_;     // directories
  bool has_failed_ = false;
  bool limited_ = true;
};

// Does a step of a part, as the process that Parts starts. `what` is PART|ENGINE|STEP.
int RunPart(const std::vector<Row>& rows, const std::vector<Engine>& engines,
            const std::string& what, const std::string& directory, bool defaults,
            double rest_seconds);

// Returns roughly how many minutes the rows take with so many engines.
double EstimateMinutes(const std::vector<Row>& rows, size_t engines);

}  // namespace varve::bench
