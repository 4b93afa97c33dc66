// make soak: everything that Varve does, at once, for an hour or as long as one likes, and a report
// of what was found. Exits with 1 when anything was wrong.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "fmt/format.h"
#include "unit-tests/prove/soak/soak.h"
#include "unit-tests/testing/temp_dir.h"

ABSL_FLAG(int, seconds, 3600, "how long clients call; the checks come on top");
ABSL_FLAG(uint64_t, data_mib, 256, "MiB of keys and values, at most; not below 24");
ABSL_FLAG(uint64_t, memory_mib, 192, "MiB of memory-limit, of each server");
ABSL_FLAG(uint64_t, disk_mib, 2048, "MiB of max-disk-bytes, of each server");
ABSL_FLAG(uint64_t, seed, 0, "0: another one each time");
ABSL_FLAG(std::string, server, VARVE_SERVER_MAIN, "the server_main to test");
ABSL_FLAG(std::string, client, VARVE_CLIENT_MAIN, "its client_main");
ABSL_FLAG(std::string, directory, "",
          "where the stores are; it is kept. Empty: a directory of its own, which goes");

namespace varve::prove {
namespace {

int Main() {
  std::string directory = absl::GetFlag(FLAGS_directory);
  std::optional<testing::TempDir> own;
  if (directory.empty()) directory = own.emplace().path();
  std::filesystem::create_directories(directory);
  const SoakOptions options{
      .server = absl::GetFlag(FLAGS_server),
      .client = absl::GetFlag(FLAGS_client),
      .directory = directory,
      .load = std::chrono::seconds(absl::GetFlag(FLAGS_seconds)),
      .data_bytes = absl::GetFlag(FLAGS_data_mib) << 20,
      .memory_limit = absl::GetFlag(FLAGS_memory_mib) << 20,
      .disk_limit = absl::GetFlag(FLAGS_disk_mib) << 20,
      .seed = absl::GetFlag(FLAGS_seed) != 0 ? absl::GetFlag(FLAGS_seed) : std::random_device{}()};
  const SoakFigures figures = RunSoak(options);
  fmt::print("{}", ReportOf(options, figures));
  return figures.good() ? 0 : 1;
}

}  // namespace
}  // namespace varve::prove

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "serves a mixed load with everything switched on, watches what it takes, and checks all data "
      "at the end");
  absl::ParseCommandLine(argc, argv);
  return varve::prove::Main();
}
