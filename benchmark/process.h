// Functions for the processes of a benchmark: child processes, the data directory, and the end of
// the program after an error.
//
// Thread-safety: Fail() may be called from any thread; only the main thread calls the rest.
// Invariants: in whatever way this process ends, its children are killed. Unless it ends by
// SIGKILL, the data directory is removed, too.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace varve::bench {

// Prints `what` and the end of each child's log, kills the children, removes the data directory and
// ends the process with status 1.
[[noreturn]] void Fail(const std::string& what);

// Creates the empty directory `<parent>/<name>` for all data, which is removed when the process
// ends, and makes SIGINT and SIGTERM end the process cleanly. An empty parent means the folder of
// this program.
// Requires: the first call, before any thread starts.
std::string ClaimDataDirectory(const std::string& parent, const std::string& name);

// Return the folder of this program, and the program's path.
std::string ProgramDirectory();
std::string ProgramPath();

// Creates the directory, or empties an existing one.
void MakeEmptyDirectory(const std::string& path);
void RemoveDirectory(const std::string& path);

// Has the empty cgroup removed when the process ends, once its children are gone. The last one that
// was named is removed first.
void RemoveGroupAtEnd(const std::string& path);

// Runs a program to its end and returns what it wrote to standard output. Stores in `*ok` whether
// it exited with 0; without `ok` a failure ends the benchmark. args[0] is a path or a name in PATH.
std::string Capture(const std::vector<std::string>& args, bool* ok = nullptr);

// Runs a program as Capture() does, and stores in `*failure` why it failed, in one line; nothing if
// it did not. The reason is kKilled where a signal SIGKILL ended it or a process that it needs,
// which is what a memory cgroup does, and else the last thing that it wrote to standard error.
// Returns what it wrote to standard output, also if it failed.
std::string CaptureWithFailure(const std::vector<std::string>& args, std::string* failure);
inline constexpr const char* kKilled = "killed";

// Ends this process as one that CaptureWithFailure() takes for killed.
[[noreturn]] void EndAsKilled();

// A child is a server that runs beside the benchmark. The destructor kills it.
class Child {
 public:
  // Starts the program with its output appended to `log`.
  Child(const std::vector<std::string>& args, const std::string& log);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Returns false once the process has ended.
  bool Running() const;
  // Returns whether a signal ended it.
  bool WasKilled() const;
  // Sends SIGTERM and waits for the end, for as long as a clean end may take.
  void Stop();
  // Stop and continue the process: a paused server takes no processor time from the measured one.
  void Pause() { kill(pid_, SIGSTOP); }
  void Resume() { kill(pid_, SIGCONT); }
  // Returns the processor time of all its threads so far, in seconds; 0 once it has ended.
  double CpuSeconds() const;
  // Returns its resident memory in bytes.
  int64_t ResidentBytes() const;

 private:
  pid_t pid_ = -1;
};

// Returns the resident memory of a process in bytes, pages of mapped files included.
int64_t ResidentBytes(const std::string& pid);

}  // namespace varve::bench
