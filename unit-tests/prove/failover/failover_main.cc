// failover_main SERVER_MAIN DIRECTORY SEED [COUNT [sync|keys|async|follower]]: prints the history
// of clients over so many failovers, with sync-replicas (sync: on shared keys; keys: each write on
// its own) or without (async), or of clients of a primary and its follower over so many kills; for
// linearizability/check.go. What was done goes to standard error.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/prove/failover/failover.h"
#include "unit-tests/prove/failover/follower.h"

namespace varve::prove {
namespace {

int Print(const std::vector<std::string>& lines, const std::vector<std::string>& complaints) {
  for (const std::string& complaint : complaints) fmt::print(stderr, "{}\n", complaint);
  for (const std::string& line : lines) fmt::print("{}\n", line);
  return complaints.empty() ? 0 : 2;
}

int Follow(const FollowerOptions& options) {
  const FollowerFigures figures = RunFollower(options);
  fmt::print(
      stderr,
      "seed {}: {} rounds, {} kills, {} cuts, {} operations, {} writes acknowledged, {} keys "
      "compared\n",
      options.seed, figures.rounds, figures.kills, figures.cuts, figures.operations,
      figures.acknowledged, figures.compared);
  return Print(figures.lines, figures.complaints);
}

int FailOver(const FailoverOptions& options) {
  const FailoverFigures figures = RunFailovers(options);
  const std::vector<std::chrono::milliseconds>& gaps = figures.gaps;
  fmt::print(stderr,
             "seed {}: {} failovers, {} kills, {} cuts, {} operations, {} writes acknowledged, {} "
             "of them diverged; none was acknowledged for {} ms in the middle, {} at most\n",
             options.seed, figures.failovers, figures.kills, figures.cuts, figures.operations,
             figures.acknowledged, figures.diverged,
             gaps.empty() ? 0 : gaps[gaps.size() / 2].count(),
             gaps.empty() ? 0 : gaps.back().count());
  return Print(figures.lines, figures.complaints);
}

}  // namespace
}  // namespace varve::prove

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr,
               "failover_main SERVER_MAIN DIRECTORY SEED [COUNT [sync|keys|async|follower]]\n");
    return 2;
  }
  const std::string server = argv[1], directory = argv[2];
  const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  const uint64_t count = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 10;
  const std::string mode = argc > 5 ? argv[5] : "sync";
  if (mode == "follower") {
    return varve::prove::Follow(
        {.server = server, .directory = directory, .seed = seed, .rounds = count});
  }
  return varve::prove::FailOver({.server = server,
                                 .directory = directory,
                                 .seed = seed,
                                 .failovers = count,
                                 .sync_replicas = mode != "async",
                                 .own_keys = mode != "sync"});
}
