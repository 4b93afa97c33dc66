#include "client/program/command_sender.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_replace.h"
#include "client/backoff.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kPlace = "{}";
constexpr milliseconds kFirstPause{250};
constexpr milliseconds kLongestPause{30'000};
constexpr milliseconds kStep{50};       // between two looks at whether the archiver is stopped
constexpr milliseconds kGrace{10'000};  // that a command has left then

// Returns the text so that a shell takes it for one word. What has no meaning for a shell stays as
// it is, and so may also stand between quotes of the user.
std::string Quoted(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
  });
  return is_plain ? text : fmt::format("'{}'", absl::StrReplaceAll(text, {{"'", "'\\''"}}));
}

absl::Status Failed(const std::string& name, const std::string& how) {
  return absl::UnavailableError(
      fmt::format("the command of --exec {} for {}, which is not archived yet", how, name));
}

// How the process is started.
class SpawnSettings {
 public:
  explicit SpawnSettings(const std::string& path) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, path.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, STDERR_FILENO, STDOUT_FILENO);
    // The connection to the server is not the command's.
    posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

}  // namespace

bool IsSenderCommand(const std::string& command) {
  return command.find(kPlace) != std::string::npos;
}

CommandSender::CommandSender(std::string command, bool once, Stopped stopped, Say say)
    : command_(std::move(command)),
      once_(once),
      stopped_(std::move(stopped)),
      say_(std::move(say)) {
  VARVE_ASSERT(IsSenderCommand(command_));
}

absl::Status CommandSender::Send(const std::string& name, const std::string& path) {
  const std::string command = absl::StrReplaceAll(command_, {{"{}", Quoted(name)}});
  Backoff backoff(kFirstPause, kLongestPause);
  for (;;) {
    const absl::Status sent = Run(command, name, path);
    if (!absl::IsUnavailable(sent) || once_) return sent;
    if (stopped_()) return absl::CancelledError(sent.message());
    say_(fmt::format("{}; trying again", std::string(sent.message())));
    for (milliseconds left = backoff.Next(); left.count() > 0 && !stopped_(); left -= kStep)
      std::this_thread::sleep_for(std::min(left, kStep));
  }
}

absl::Status CommandSender::Run(const std::string& command, const std::string& name,
                                const std::string& path) const {
  const SpawnSettings settings(path);
  std::string shell = "sh", option = "-c", text = command;
  char* const words[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t process = 0;
  const int error =
      posix_spawn(&process, "/bin/sh", settings.files(), settings.attributes(), words, environ);
  if (error != 0) return IoError(error, "start", "/bin/sh");
  return WaitFor(process, name);
}

absl::Status CommandSender::WaitFor(int process, const std::string& name) const {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  milliseconds left = kGrace;
  for (pollfd end{.fd = handle, .events = POLLIN, .revents = 0}; handle >= 0;) {
    if (poll(&end, 1, static_cast<int>(kStep.count())) > 0) break;
    if (!stopped_()) continue;
    if (left.count() == 0) kill(-process, SIGKILL);
    left = std::max(left - kStep, milliseconds(0));
  }
  if (handle >= 0) close(handle);
  int result = 0;
  while (waitpid(process, &result, 0) < 0) {
    if (errno != EINTR) return IoError(errno, "wait for", "the command of --exec");
  }
  if (WIFSIGNALED(result))
    return Failed(name, fmt::format("was ended by signal {}", WTERMSIG(result)));
  if (WEXITSTATUS(result) != 0)
    return Failed(name, fmt::format("ended with exit code {}", WEXITSTATUS(result)));
  return absl::OkStatus();
}

}  // namespace varve
