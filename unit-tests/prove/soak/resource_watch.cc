#include "unit-tests/prove/soak/resource_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/time/time.h"
#include "fmt/format.h"
#include "unit-tests/testing/process_memory.h"

namespace varve::prove {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
// A look at a directory takes a while, in which a file may come and another one go: it is above its
// limit if so many looks in a row say so.
constexpr int kLooksAtDirectory = 3;
constexpr uint64_t kLookOfFirsts = 50;

uint64_t EntriesOf(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  uint64_t count = 0;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) ++count;
  return count;
}

// Returns the bytes of the files below the directory, each counted once however many names it has.
uint64_t BytesBelow(const std::string& directory) {
  std::error_code error;
  fs::recursive_directory_iterator entries(directory, error);
  std::set<ino_t> counted;
  uint64_t bytes = 0;
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    struct stat info;
    if (lstat(entries->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (counted.insert(info.st_ino).second) bytes += static_cast<uint64_t>(info.st_size);
  }
  return bytes;
}

uint64_t BytesWithin(const WatchedServer& server) {
  uint64_t least = BytesBelow(server.directory);
  for (int look = 1; look < kLooksAtDirectory && least > server.disk_limit; ++look)
    least = std::min(least, BytesBelow(server.directory));
  return least;
}

}  // namespace

Usage LookAt(const WatchedServer& server) {
  const std::string process = std::to_string(server.process);
  return {.resident = testing::ResidentBytes(process),
          .disk = BytesWithin(server),
          .descriptors = EntriesOf("/proc/" + process + "/fd"),
          .threads = EntriesOf("/proc/" + process + "/task")};
}

ResourceWatch::ResourceWatch(std::vector<WatchedServer> servers, Findings* findings)
    : servers_(std::move(servers)),
      findings_(*findings),
      peaks_(servers_.size()),
      firsts_(servers_.size()) {}

void ResourceWatch::Run(const absl::Notification& ended) {
  do {
    ++looks_;
    for (size_t i = 0; i < servers_.size(); ++i) Look(i);
  } while (!ended.WaitForNotificationWithTimeout(kBetweenLooks));
}

void ResourceWatch::Look(size_t index) {
  const WatchedServer& server = servers_[index];
  const Usage now = LookAt(server);
  Usage& peak = peaks_[index];
  if (server.memory_limit != 0 && now.resident > std::max(server.memory_limit, peak.resident)) {
    findings_.Add(fmt::format("{} has {} bytes resident, and its memory-limit is {}", server.name,
                              now.resident, server.memory_limit));
  }
  if (now.disk > std::max(server.disk_limit, peak.disk)) {
    findings_.Add(fmt::format("the directory of {} has {} bytes, and its max-disk-bytes is {}",
                              server.name, now.disk, server.disk_limit));
  }
  peak = {.resident = std::max(peak.resident, now.resident),
          .disk = std::max(peak.disk, now.disk),
          .descriptors = std::max(peak.descriptors, now.descriptors),
          .threads = std::max(peak.threads, now.threads)};
  if (looks_ <= kLookOfFirsts) firsts_[index] = peak;
}

}  // namespace varve::prove
