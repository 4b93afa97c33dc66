// The differential test at any length, by hand: see docs/protocol.md. Exits with 1 when it found a
// difference that nothing explains.
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "fmt/format.h"
#include "unit-tests/differential/differential_run.h"

ABSL_FLAG(uint64_t, commands, 1'000'000, "commands to send to both servers");
ABSL_FLAG(uint64_t, seed, 1, "seed of the first round");
ABSL_FLAG(int, protocol, 0, "2 or 3; 0: alternately");
ABSL_FLAG(size_t, max_differences, 5, "differences after which the run ends");
ABSL_FLAG(std::string, redis, "redis-server", "the redis-server to compare with");
ABSL_FLAG(std::string, varve, VARVE_SERVER_MAIN, "the server_main to test");
ABSL_FLAG(bool, grouped, false,
          "work in a namespace whose keys are one group, as a store on other machines takes it");

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "compares the replies of Varve and Redis to random commands; server_main gets what stands "
      "behind --, such as --store=hbase");
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  varve::differential::RunOptions options;
  options.commands = absl::GetFlag(FLAGS_commands);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.protocol = absl::GetFlag(FLAGS_protocol);
  options.max_differences = absl::GetFlag(FLAGS_max_differences);
  options.redis_server = absl::GetFlag(FLAGS_redis);
  options.varve_server = absl::GetFlag(FLAGS_varve);
  options.varve_arguments.assign(arguments.begin() + 1, arguments.end());
  options.grouped = absl::GetFlag(FLAGS_grouped);
  const auto run = varve::differential::DifferentialRun::Start(options);
  if (!run.ok()) {
    fmt::print(stderr, "{}\n", run.status().ToString());
    return 2;
  }
  const auto result = (*run)->Run();
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.status().ToString());
    return 2;
  }
  for (const std::string& difference : result->differences)
    fmt::print("difference: {}\n", difference);
  for (const auto& [reason, times] : result->explained)
    fmt::print("explained {} times: {}\n", times, reason);
  for (const auto& [command, reason] : result->left_out)
    fmt::print("left out: {}: {}\n", command, reason);
  std::string counts;
  for (const auto& [name, times] : result->by_command) counts += fmt::format(" {} {}", name, times);
  fmt::print("compared:{}\n", counts);
  fmt::print("{} commands in {} rounds, {} unexplained differences\n", result->commands,
             result->rounds, result->differences.size());
  return result->differences.empty() ? 0 : 1;
}
