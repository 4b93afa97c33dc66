#include "benchmark/experiments/apart.h"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"

namespace varve::bench {

std::optional<std::vector<Figure>> MeasureApart(const std::string& experiment,
                                                const std::string& part, uint64_t memory) {
  const MemoryLimit limit(memory);
  if (limit.group().empty()) {
    fmt::print(stderr, "{} is not measured: no memory cgroup can be made\n", experiment);
    return std::nullopt;
  }
  std::string failure;
  std::istringstream lines(
      CaptureWithFailure({ProgramPath(), "--experiment=" + experiment, "--apart=" + part,
                          "--memory_group=" + limit.group()},
                         &failure));
  if (!failure.empty()) {
    fmt::print(stderr, "{}, {}: {}{}\n", experiment, part, failure,
               limit.WasExceeded() ? ": out of memory" : "");
  }
  std::vector<Figure> figures;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, '|');
    double y = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &y)) Fail("a part has printed: " + line);
    figures.push_back({words[0], y});
  }
  return figures;
}

void PrintFigure(const Figure& figure) {
  fmt::print("{}|{}\n", figure.name, figure.y);
  std::fflush(stdout);
}

}  // namespace varve::bench
