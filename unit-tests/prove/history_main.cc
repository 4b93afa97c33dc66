// history_main SERVER_MAIN DIRECTORY SEED [KILLS]: prints a history for linearizability/check.go;
// see there.
#include <cstdio>
#include <cstdlib>

#include "fmt/format.h"
#include "unit-tests/prove/history.h"

int main(int argc, char** argv) {
  if (argc < 4) return fmt::print(stderr, "history_main SERVER_MAIN DIRECTORY SEED [KILLS]\n"), 2;
  varve::prove::HistoryOptions options{.server = argv[1], .directory = argv[2]};
  options.seed = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) options.kills = std::atoi(argv[4]);
  const auto lines = varve::prove::RecordHistory(options);
  if (!lines.ok()) return fmt::print(stderr, "{}\n", lines.status().ToString()), 2;
  for (const std::string& line : *lines) fmt::print("{}\n", line);
  return 0;
}
