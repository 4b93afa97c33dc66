// Every fuzz target over its own seeds and over the inputs in the repository: those that fuzzing
// found to reach most, and those that once broke a promise. A broken one ends the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "unit-tests/fuzz/fuzz_target.h"

namespace varve::fuzz {
namespace {

class CorpusTest : public ::testing::TestWithParam<Target> {};

std::vector<std::filesystem::path> FilesOf(const std::string& target) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path directory =
      std::filesystem::path(VARVE_SOURCE_DIR) / "unit-tests/fuzz/corpus" / target;
  if (!std::filesystem::exists(directory)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST_P(CorpusTest, SeedsAndFilesKeepThePromises) {
  const Target& target = GetParam();
  RunTarget(target, "");
  for (const std::string& seed : target.seeds()) RunTarget(target, ExactCopy(seed).view());
  for (const std::filesystem::path& path : FilesOf(target.name)) {
    SCOPED_TRACE(path.string());
    std::ifstream file(path, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    ASSERT_TRUE(file.good() || file.eof());
    RunTarget(target, ExactCopy(input).view());
  }
}

// Without a fuzzer, the nearest damage: one byte of a seed is another one, or the seed ends early.
TEST_P(CorpusTest, DamagedSeedsKeepThePromises) {
  constexpr size_t kDamaged = 300;
  const Target& target = GetParam();
  const std::vector<std::string> seeds = target.seeds();
  ASSERT_FALSE(seeds.empty());
  std::minstd_rand random(1);
  for (size_t i = 0; i < kDamaged; ++i) {
    std::string input = seeds[i % seeds.size()];
    if (input.empty()) continue;
    const size_t at = random() % input.size();
    if (i % 4 == 3) {
      input.resize(at);
    } else {
      input[at] = static_cast<char>(random());
    }
    RunTarget(target, ExactCopy(input).view());
  }
}

std::string NameOf(const ::testing::TestParamInfo<Target>& target) { return target.param.name; }

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, ::testing::ValuesIn(Targets()), NameOf);

}  // namespace
}  // namespace varve::fuzz
