#include "benchmark/process_use.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "benchmark/process.h"

namespace varve::bench {
namespace {

void ForEachFile(const std::string& directory,
                 const std::function<void(const std::string&)>& visit) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) visit(entry.path().string());
  }
}

// Where this process goes in version 2's hierarchy, in which a group that has processes can pass no
// controller on to groups below it.
constexpr const char* kOwnLeaf = "/varve_benchmark_itself";

// Where a memory cgroup of ours can be made: below our own, in version 1's hierarchy or in version
// 2's. Its limit's file is named in `*limit_file`. Empty: nowhere.
std::string OwnMemoryGroup(std::string* limit_file) {
  std::ifstream groups("/proc/self/cgroup");
  std::string unified;
  for (std::string line; std::getline(groups, line);) {
    const size_t controllers = line.find(':') + 1;
    const size_t path = line.find(':', controllers) + 1;
    if (line.substr(controllers, path - 1 - controllers) == "memory") {
      *limit_file = "memory.limit_in_bytes";
      return "/sys/fs/cgroup/memory" + line.substr(path);
    }
    if (path == controllers + 1) unified = "/sys/fs/cgroup" + line.substr(path);
  }
  *limit_file = "memory.max";
  // PassMemoryOn() may have moved this process one group down.
  const size_t below = unified.rfind(kOwnLeaf);
  return below == std::string::npos ? unified : unified.substr(0, below);
}

bool WriteTo(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

// Lets groups below `own` of version 2's hierarchy limit memory. Returns false if this user may
// not, or other processes are in that group.
bool PassMemoryOn(const std::string& own) {
  const std::string control = own + "/cgroup.subtree_control";
  std::ifstream passed_on(control);
  for (std::string controller; passed_on >> controller;) {
    if (controller == "memory") return true;
  }
  if (WriteTo(control, "+memory")) return true;
  const std::string leaf = own + kOwnLeaf;
  if (mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return false;
  if (!WriteTo(leaf + "/cgroup.procs", std::to_string(getpid()))) return false;
  if (WriteTo(control, "+memory")) return true;
  WriteTo(own + "/cgroup.procs", std::to_string(getpid()));
  rmdir(leaf.c_str());
  return false;
}

}  // namespace

ProcessUse ProcessUse::Now(pid_t process) {
  ProcessUse use;
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  timespec time{};
  if ((process != 0 && clock_getcpuclockid(process, &clock) != 0) ||
      clock_gettime(clock, &time) != 0) {
    Fail("cannot read the processor time of a process");
  }
  use.cpu_seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;

  std::ifstream io(fmt::format("/proc/{}/io", process == 0 ? "self" : std::to_string(process)));
  std::string name;
  int known = 0;
  for (uint64_t value = 0; io >> name >> value;) {
    uint64_t* const field = name == "wchar:"         ? &use.write_calls
                            : name == "read_bytes:"  ? &use.disk_read
                            : name == "write_bytes:" ? &use.disk_written
                                                     : nullptr;
    if (field == nullptr) continue;
    *field = value;
    ++known;
  }
  if (known != 3) Fail("cannot read /proc/PID/io of a process");
  return use;
}

void WaitUntilIdle(double rest_seconds, pid_t process) {
  constexpr double kStep = 0.05;
  constexpr double kPatience = 600;
  double quiet = 0;
  ProcessUse last = ProcessUse::Now(process);
  for (double waited = 0; waited < kPatience; waited += kStep) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kStep));
    const ProcessUse now = ProcessUse::Now(process);
    const bool idle = now.cpu_seconds - last.cpu_seconds < kStep / 20 &&
                      now.write_calls - last.write_calls < (64u << 10);
    quiet = idle ? quiet + kStep : 0;
    if (quiet >= rest_seconds) return;
    last = now;
  }
  Fail("a process does not come to rest: it is busy for 10 minutes");
}

uint64_t DiskReads(const std::string& directory) {
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) return 0;
  std::ifstream counters(
      fmt::format("/sys/dev/block/{}:{}/stat", major(status.st_dev), minor(status.st_dev)));
  uint64_t reads = 0;
  counters >> reads;
  return reads;
}

uint64_t BytesOnDisk(const std::string& directory) {
  constexpr uint64_t kStatBlock = 512;
  uint64_t bytes = 0;
  ForEachFile(directory, [&](const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0)
      bytes += static_cast<uint64_t>(status.st_blocks) * kStatBlock;
  });
  return bytes;
}

void DropFromPageCache(const std::string& directory) {
  ForEachFile(directory, [](const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fdatasync(descriptor) != 0 ||
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) != 0) {
      Fail("cannot take out of the page cache: " + path);
    }
    close(descriptor);
  });
}

MemoryLimit::MemoryLimit(uint64_t bytes) {
  std::string limit_file;
  const std::string own = OwnMemoryGroup(&limit_file);
  if (own.empty()) return;
  const bool unified = limit_file == "memory.max";
  if (unified && !PassMemoryOn(own)) return;
  static int groups = 0;
  const std::string group = fmt::format("{}/varve_benchmark_{}_{}", own, getpid(), ++groups);
  if (mkdir(group.c_str(), 0755) != 0) return;
  RemoveGroupAtEnd(group);
  // Memory that goes to a swap file would be memory all the same.
  if (unified) WriteTo(group + "/memory.swap.max", "0");
  if (WriteTo(group + "/" + limit_file, std::to_string(bytes))) {
    group_ = group;
  } else {
    rmdir(group.c_str());
  }
}

MemoryLimit::~MemoryLimit() {
  if (!group_.empty()) rmdir(group_.c_str());
}

bool MemoryLimit::WasExceeded() const {
  if (group_.empty()) return false;
  // The first file is of version 2, the second of version 1; both count in a line of that name.
  for (const char* file : {"/memory.events", "/memory.oom_control"}) {
    std::ifstream events(group_ + file);
    uint64_t count = 0;
    for (std::string name; events >> name >> count;) {
      if (name == "oom_kill" && count > 0) return true;
    }
  }
  return false;
}

void MemoryLimit::Enter(const std::string& group) {
  if (!WriteTo(group + "/cgroup.procs", std::to_string(getpid())))
    Fail("cannot enter the memory cgroup " + group);
}

}  // namespace varve::bench
