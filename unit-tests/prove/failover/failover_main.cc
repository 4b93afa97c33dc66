// failover_main SERVER_MAIN DIRECTORY SEED [FAILOVERS [sync|async]]: prints the history of clients
// that follow the primary over failovers, for linearizability/check.go; what was done goes to
// standard error.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fmt/format.h"
#include "unit-tests/prove/failover/failover.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "failover_main SERVER_MAIN DIRECTORY SEED [FAILOVERS [sync|async]]\n");
    return 2;
  }
  varve::prove::FailoverOptions options{.server = argv[1], .directory = argv[2]};
  options.seed = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) options.failovers = std::strtoull(argv[4], nullptr, 10);
  options.sync_replicas = argc <= 5 || std::string(argv[5]) != "async";
  const varve::prove::FailoverFigures figures = varve::prove::RunFailovers(options);
  const std::vector<std::chrono::milliseconds>& gaps = figures.gaps;
  fmt::print(stderr,
             "seed {}: {} failovers, {} kills, {} cuts, {} operations, {} writes acknowledged, {} "
             "of them diverged; none was acknowledged for {} ms in the middle, {} at most\n",
             options.seed, figures.failovers, figures.kills, figures.cuts, figures.operations,
             figures.acknowledged, figures.diverged,
             gaps.empty() ? 0 : gaps[gaps.size() / 2].count(),
             gaps.empty() ? 0 : gaps.back().count());
  for (const std::string& complaint : figures.complaints) fmt::print(stderr, "{}\n", complaint);
  for (const std::string& line : figures.lines) fmt::print("{}\n", line);
  return figures.complaints.empty() ? 0 : 2;
}
