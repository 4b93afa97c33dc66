#include "benchmark/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

namespace varve::bench {
namespace {

// What has to go when the process ends; guarded by the mutex, as the signal thread and Fail() may
// come from anywhere.
struct Leftovers {
  std::mutex mutex;
  std::map<pid_t, std::string> children;  // with the path of its log
  std::string directory;
  std::vector<std::string> groups;
};

// The exit status of EndAsKilled().
constexpr int kKilledStatus = 137;

Leftovers& TheLeftovers() {
  static Leftovers* const leftovers = new Leftovers;  // outlives every thread
  return *leftovers;
}

void CleanUp() {
  Leftovers& leftovers = TheLeftovers();
  const std::lock_guard lock(leftovers.mutex);
  for (const auto& [pid, log] : leftovers.children) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  leftovers.children.clear();
  for (auto group = leftovers.groups.rbegin(); group != leftovers.groups.rend(); ++group)
    rmdir(group->c_str());
  if (!leftovers.directory.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(leftovers.directory, ignored);
  }
}

void PrintLogs() {
  constexpr size_t kTail = 2000;
  Leftovers& leftovers = TheLeftovers();
  const std::lock_guard lock(leftovers.mutex);
  for (const auto& [pid, log] : leftovers.children) {
    std::ifstream file(log);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!text.empty())
      fmt::print(stderr, "--- {}\n{}\n", log,
                 text.substr(text.size() - std::min(kTail, text.size())));
  }
}

std::vector<char*> Pointers(const std::vector<std::string>& args) {
  std::vector<char*> pointers;
  for (const std::string& arg : args) pointers.push_back(const_cast<char*>(arg.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Forks and runs `args` with standard output and error at these descriptors; the child dies with
// us. -1 where it can't fork.
pid_t Spawn(const std::vector<std::string>& args, int out, int err) {
  const std::vector<char*> pointers = Pointers(args);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // we were already gone before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(pointers[0], pointers.data());
  _exit(127);
}

// How a child ended, with its process id; zeros while it runs. It is reaped when its object goes.
siginfo_t EndOf(pid_t pid) {
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return info;
}

}  // namespace

void Fail(const std::string& what) {
  fmt::print(stderr, "error: {}\n", what);
  PrintLogs();
  CleanUp();
  _exit(1);
}

std::string ProgramPath() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string ProgramDirectory() {
  return std::filesystem::path(ProgramPath()).parent_path().string();
}

void MakeEmptyDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  std::filesystem::create_directories(path, error);
  if (error) Fail(fmt::format("cannot make an empty directory {}: {}", path, error.message()));
}

void RemoveDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) Fail(fmt::format("cannot remove {}: {}", path, error.message()));
}

std::string ClaimDataDirectory(const std::string& parent, const std::string& name) {
  const std::string path = (parent.empty() ? ProgramDirectory() : parent) + "/" + name;
  if (std::filesystem::is_regular_file(path)) Fail(path + " is a file, and no directory of data");
  MakeEmptyDirectory(path);
  TheLeftovers().directory = path;
  std::atexit(CleanUp);

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    CleanUp();
    _exit(128 + signal);
  }).detach();
  return path;
}

void RemoveGroupAtEnd(const std::string& path) {
  Leftovers& leftovers = TheLeftovers();
  const std::lock_guard lock(leftovers.mutex);
  leftovers.groups.push_back(path);
}

namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    Fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {ends[0], ends[1]};
}

// Appends what there is to read. Returns false at the end.
bool ReadSome(int descriptor, std::string* text) {
  char buffer[4096];
  const ssize_t size = read(descriptor, buffer, sizeof(buffer));
  if (size < 0 && errno == EINTR) return true;
  if (size > 0) text->append(buffer, static_cast<size_t>(size));
  return size > 0;
}

// Reads both pipes to their ends. What comes by the second one goes to standard error, too.
void ReadBoth(int output_end, int errors_end, std::string* output, std::string* errors) {
  pollfd polled[] = {{.fd = output_end, .events = POLLIN}, {.fd = errors_end, .events = POLLIN}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (poll(polled, std::size(polled), -1) < 0) {
      if (errno == EINTR) continue;
      Fail(fmt::format("cannot wait for output: {}", std::strerror(errno)));
    }
    if (polled[0].revents != 0 && !ReadSome(output_end, output)) polled[0].fd = -1;
    if (polled[1].revents == 0) continue;
    const size_t known = errors->size();
    if (!ReadSome(errors_end, errors)) polled[1].fd = -1;
    fmt::print(stderr, "{}", errors->substr(known));
  }
}

// Runs a program to its end, stores its wait status and what it wrote to standard error, and
// returns what it wrote to standard output.
std::string RunToEnd(const std::vector<std::string>& args, int* status, std::string* errors) {
  const Pipe out = MakePipe();
  const Pipe err = MakePipe();
  Leftovers& leftovers = TheLeftovers();
  pid_t pid = -1;
  {
    const std::lock_guard lock(leftovers.mutex);
    pid = Spawn(args, out.write_end, err.write_end);
    if (pid > 0) leftovers.children[pid] = "";  // it writes to our own output, there is no log
  }
  close(out.write_end);
  close(err.write_end);
  if (pid < 0) Fail(fmt::format("cannot fork: {}", std::strerror(errno)));
  std::string output;
  ReadBoth(out.read_end, err.read_end, &output, errors);
  close(out.read_end);
  close(err.read_end);
  {
    const std::lock_guard lock(leftovers.mutex);
    leftovers.children.erase(pid);
  }
  waitpid(pid, status, 0);
  return output;
}

// Returns the last line of the text that is not empty, without what would end a column of a table.
std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "";
  const size_t before = text.rfind('\n', end);
  std::string line = text.substr(before == std::string::npos ? 0 : before + 1);
  line.resize(line.find_last_not_of("\n ") + 1);
  std::replace(line.begin(), line.end(), '|', '/');
  return line;
}

}  // namespace

std::string Capture(const std::vector<std::string>& args, bool* ok) {
  int status = 0;
  std::string errors;
  const std::string output = RunToEnd(args, &status, &errors);
  const bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (ok != nullptr) {
    *ok = succeeded;
  } else if (!succeeded) {
    Fail(fmt::format("{} failed (status {}): {}", args[0], status, output));
  }
  return output;
}

std::string CaptureWithFailure(const std::vector<std::string>& args, std::string* failure) {
  int status = 0;
  std::string errors;
  const std::string output = RunToEnd(args, &status, &errors);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    failure->clear();
  } else if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
             (WIFEXITED(status) && WEXITSTATUS(status) == kKilledStatus)) {
    *failure = kKilled;
  } else {
    const std::string end = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                : fmt::format("status {}", WEXITSTATUS(status));
    const std::string line = LastLine(errors);
    *failure = line.empty() ? "failed: " + end : fmt::format("failed ({}): {}", end, line);
  }
  return output;
}

void EndAsKilled() {
  CleanUp();
  _exit(kKilledStatus);
}

Child::Child(const std::vector<std::string>& args, const std::string& log) {
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (out < 0) Fail(fmt::format("cannot open {}: {}", log, std::strerror(errno)));
  {
    Leftovers& leftovers = TheLeftovers();
    const std::lock_guard lock(leftovers.mutex);
    pid_ = Spawn(args, out, out);
    if (pid_ > 0) leftovers.children[pid_] = log;
  }
  close(out);
  if (pid_ < 0) Fail(fmt::format("cannot fork: {}", std::strerror(errno)));
}

Child::~Child() {
  Leftovers& leftovers = TheLeftovers();
  const std::lock_guard lock(leftovers.mutex);
  leftovers.children.erase(pid_);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Child::Running() const { return EndOf(pid_).si_pid == 0; }

bool Child::WasKilled() const {
  const siginfo_t end = EndOf(pid_);
  return end.si_pid != 0 && end.si_code == CLD_KILLED;
}

void Child::Stop() {
  constexpr auto kStep = std::chrono::milliseconds(20);
  constexpr int kMaxSteps = 3000;
  Resume();
  kill(pid_, SIGTERM);
  for (int step = 0; Running(); ++step) {
    if (step == kMaxSteps) Fail("a server does not stop when it is asked to");
    std::this_thread::sleep_for(kStep);
  }
}

double Child::CpuSeconds() const {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int64_t Child::ResidentBytes() const { return bench::ResidentBytes(std::to_string(pid_)); }

int64_t ResidentBytes(const std::string& pid) {
  std::ifstream statm("/proc/" + pid + "/statm");
  int64_t total = 0;
  int64_t resident = 0;
  if (!(statm >> total >> resident)) Fail("cannot read the memory use of process " + pid);
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace varve::bench
