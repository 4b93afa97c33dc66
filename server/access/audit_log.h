// The audit log tells in a file what was denied and which commands of @admin were executed: a line
// of JSON for each, with the time, the user and the client. It has the names of commands, keys and
// channels, and never a password, a value or another argument.
//
//   {"time":"2026-11-24T07:00:00.123Z","event":"denied","reason":"key","command":"get",
//    "object":"secret:1","context":"toplevel","user":"app","client":"127.0.0.1:5000","id":7}
//   {"time":...,"event":"admin","command":"config|set","user":"default","client":...,"id":8}
//
// A thread that adds a line never waits for the disk: lines wait in memory, and a task on the
// server's pool writes them. While the disk hangs, at most kMaxWaiting bytes of them wait; further
// ones are counted, and a line {"event":"lost","lines":n} says how many are missing.
//
// Thread-safety: all functions but Open() and Stop() may be called on any thread.
// Invariants: at most one task writes at a time, so lines stand in the order in which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class AuditLog {
 public:
  static constexpr size_t kMaxWaiting = 1u << 20;

  struct Entry {
    std::string_view event;    // "denied" or "admin"
    std::string_view reason;   // of a denial, as in ACL LOG
    std::string_view command;  // its full name
    std::string_view object;   // the key, channel or database that was denied
    std::string_view context;  // of a denial, as in ACL LOG
    std::string_view user;
    std::string_view client;  // its address
    uint64_t client_id = 0;
  };
  // Executes a task soon on another thread. False: it can't be taken now.
  using Executor = std::function<bool(std::function<void()> task)>;

  // An empty path: there is no such log.
  explicit AuditLog(std::string path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  bool on() const { return !path_.empty(); }
  // Opens the file, if there is one. InvalidArgument: it can't be opened.
  // Requires: called once, before other threads use the log.
  [[nodiscard]] absl::Status Open(Executor executor) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a line about what happens now.
  void Add(const Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens the file anew before the next line is written, as it was moved away.
  void Reopen() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes what waits. Requires: the executor takes no more tasks and has executed those it took.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class File;

  void Schedule() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  void Append(std::string_view lines, bool reopen);

  const std::string path_;
  Executor executor_;
  std::unique_ptr<File> file_;  // the writing task's
  bool told_of_error_ = false;  // the writing task's
  absl::Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;  // lines that found no room
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve
