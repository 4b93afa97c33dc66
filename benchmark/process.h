// Processes around a benchmark: failing with cleanup, a data directory that never stays behind,
// children that never outlive us.
//
// Thread-safety: Fail() may be called from any thread; the rest belongs to the main thread.
// Invariant: whatever way this process ends, SIGKILL included, its children are killed; all ways
// but SIGKILL remove the data directory too.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace varve::bench {

// Prints `what` and the end of each child's log, kills the children, removes the data directory,
// ends the process with status 1.
[[noreturn]] void Fail(const std::string& what);

// Creates `<parent>/<name>` empty (removing a former run's) as the place for all data, to be
// removed when the process ends; also turns SIGINT and SIGTERM into a clean end. Call it once,
// before any thread starts. An empty parent means the folder of this program.
std::string ClaimDataDirectory(const std::string& parent, const std::string& name);

// The folder that holds this program, and the program itself.
std::string ProgramDirectory();
std::string ProgramPath();

// A fresh empty directory; an existing one is emptied.
void MakeEmptyDirectory(const std::string& path);
void RemoveDirectory(const std::string& path);

// An empty cgroup to remove when the process ends, whichever way, once its children are gone.
void RemoveGroupAtEnd(const std::string& path);

// Runs a program to its end and returns what it wrote to standard output; `ok`, where given, tells
// whether it exited with 0, else failure ends the benchmark. args[0] is a path or a name to find in
// PATH.
std::string Capture(const std::vector<std::string>& args, bool* ok = nullptr);

// A server that runs beside the benchmark, killed when the object goes.
class Child {
 public:
  // Starts the program with its output appended to `log`.
  Child(const std::vector<std::string>& args, const std::string& log);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // False once the process has ended.
  bool Running() const;
  // Whether it ended by a signal.
  bool WasKilled() const;
  // SIGTERM, and waits for the end, for as long as a clean one may take.
  void Stop();
  // SIGSTOP and SIGCONT: a paused server takes no CPU from the one being measured.
  void Pause() { kill(pid_, SIGSTOP); }
  void Resume() { kill(pid_, SIGCONT); }
  // CPU time of all its threads so far, in seconds; 0 when it has ended.
  double CpuSeconds() const;
  // Resident memory in bytes.
  int64_t ResidentBytes() const;

 private:
  pid_t pid_ = -1;
};

// Resident memory of a process in bytes, pages of mapped files included.
int64_t ResidentBytes(const std::string& pid);

}  // namespace varve::bench
