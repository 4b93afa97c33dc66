// The threads of a server at rest: how many there are on two cores, and that the architecture page
// names each of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr size_t kMostThreads = 12;  // ThreadSanitizer runs a thread of its own
#else
constexpr size_t kMostThreads = 11;
#endif

std::vector<std::string> ThreadsOf(pid_t process) {
  std::vector<std::string> names;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The names in the first column of the section "Threads".
std::set<std::string> ThreadsInTheManual() {
  std::set<std::string> names;
  std::ifstream file(VARVE_SOURCE_DIR "/docs/architecture.md");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Threads";
    if (!inside || !line.starts_with("| `")) continue;
    names.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

// "varve-pool-1" is a thread of "varve-pool", "varve-io-1" one like "varve-io-0".
std::string WithoutNumber(std::string name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end + 1 < name.size() && name[end] == '-') name.resize(end);
  return name;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

TEST(ThreadsTest, AServerOnTwoCoresHasFewAndTheManualNamesThem) {
  std::set<std::string> known;
  for (const std::string& name : ThreadsInTheManual()) known.insert(WithoutNumber(name));
  ASSERT_GE(known.size(), 8u);
  testing::TempDir dir;
  // What the defaults are on two cores.
  testing::ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"),
                                {"--io-threads=1", "--threads=2", "--http-port=-1"});
  ASSERT_NE(server.port(), 0) << server.log();
  // A thread gets its name when it first runs.
  std::vector<std::string> names;
  EXPECT_TRUE(testing::Eventually([&] {
    names = ThreadsOf(server.process().id());
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return known.contains(WithoutNumber(name));
    });
  })) << Listed(names);
  EXPECT_LE(names.size(), kMostThreads) << Listed(names);
  server.process().Kill(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0) << server.log();
}

}  // namespace
}  // namespace varve
