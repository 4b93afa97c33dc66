// Hands the one target that is linked in to libFuzzer. `--write-seeds=DIR` writes its seeds into
// DIR instead of fuzzing.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "unit-tests/fuzz/fuzz_target.h"

namespace {

constexpr std::string_view kWriteSeeds = "--write-seeds=";

void WriteSeeds(const varve::fuzz::Target& target, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  int number = 0;
  for (const std::string& seed : target.seeds()) {
    std::ofstream(directory / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  spdlog::set_level(spdlog::level::off);
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(kWriteSeeds)) continue;
    WriteSeeds(varve::fuzz::Targets().front(), argument.substr(kWriteSeeds.size()));
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  varve::fuzz::RunTarget(varve::fuzz::Targets().front(),
                         {reinterpret_cast<const char*>(data), size});
  return 0;
}
