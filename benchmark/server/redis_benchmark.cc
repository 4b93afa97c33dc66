#include "benchmark/server/redis_benchmark.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace varve::bench {
namespace {

// Its own test of that name, or a command in full; nothing for what it can't do. It replaces
// __rand_int__ by 12 digits, which makes the keys of exchange.h.
std::vector<std::string> Work(const Load& load) {
  const std::string key = "key:__rand_int__";
  std::vector<std::string> mget(load.keys_a_call + 1, key);
  mget[0] = "MGET";
  switch (load.operation) {
    case Operation::kSet:
      return {"-t", "set"};
    case Operation::kGet:
      return {"-t", "get"};
    case Operation::kMultiSet:
      return {"-t", "mset"};
    case Operation::kMultiGet:
      return mget;
    case Operation::kIncrement:
      return {"-t", "incr"};
    case Operation::kRange:
      return {"RANGE", "[" + key, "+", "LIMIT", "0", std::to_string(kRangeEntries)};
    case Operation::kMixed:
    case Operation::kLateReads:
    case Operation::kScans:
    case Operation::kModify:
      return {};
  }
  return {};
}

}  // namespace

std::optional<LoadResult> DriveRedisBenchmark(const Load& load, const Child& server) {
  const std::vector<std::string> work = Work(load);
  const bool is_even = load.choice == KeyChoice::kUniform;
  if (work.empty() || load.rate > 0 || !is_even) return std::nullopt;
  // It counts requests, not time: about as many as it makes in so many seconds.
  const double rate = load.pipeline == 1 ? 100e3 : 400e3;
  const uint64_t requests = std::max<uint64_t>(1, static_cast<uint64_t>(rate * load.seconds));
  std::vector<std::string> command = {"redis-benchmark",
                                      "-h",
                                      "127.0.0.1",
                                      "-p",
                                      std::to_string(load.port),
                                      "-c",
                                      std::to_string(load.connections),
                                      "-n",
                                      std::to_string(requests),
                                      "-r",
                                      std::to_string(load.keys),
                                      "-d",
                                      std::to_string(load.value_size),
                                      "-P",
                                      std::to_string(load.pipeline),
                                      "--csv"};
  if (load.tls != nullptr) command.insert(command.end(), {"--tls", "--insecure"});
  command.insert(command.end(), work.begin(), work.end());
  const double cpu_before = server.CpuSeconds();
  const std::string csv = Capture(command);
  LoadResult result;
  result.requests = requests;
  result.server_cpu_seconds = server.CpuSeconds() - cpu_before;
  // "test","rps","avg","min","p50","p95","p99","max" in milliseconds, after a heading; a test that
  // is a command may have commas.
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  const std::vector<std::string> cells = absl::StrSplit(lines.empty() ? "" : lines.back(), ',');
  const auto number = [&](size_t from_end) {
    double value = 0;
    const std::string cell = cells.size() < 8 ? "" : cells[cells.size() - from_end];
    if (cell.size() < 3 || !absl::SimpleAtod(cell.substr(1, cell.size() - 2), &value)) {
      Fail("redis-benchmark printed something unknown: " + csv);
    }
    return value;
  };
  result.seconds = static_cast<double>(requests) / number(7);
  result.p50 = number(4) * 1e-3;
  result.p99 = number(2) * 1e-3;
  return result;
}

}  // namespace varve::bench
