// A server_main (or client_main) as a process of its own, for tests that kill it or look at its
// exit code.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace varve::testing {

// A running program; killed when the object goes.
class Process {
 public:
  // `output`: file for standard output and error; empty: they go where the test's go.
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const std::string& output = "", const std::string& input = "/dev/null") {
    if (!output.empty()) unlink(output.c_str());  // nobody reads what an earlier process wrote
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    const int in = open(input.c_str(), O_RDONLY);
    dup2(in, STDIN_FILENO);
    if (!output.empty()) {
      const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
    }
    execvp(program.c_str(), argv.data());
    _exit(127);
  }
  ~Process() {
    Kill(SIGKILL);
    Wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // While it runs; with a wrapper the wrapper's.
  pid_t id() const { return pid_; }

  void Kill(int signal) {
    if (pid_ > 0) kill(pid_, signal);
  }
  // Stops it until SIGCONT; returns when none of its threads runs any more.
  void Stop() {
    Kill(SIGSTOP);
    int status = 0;
    if (pid_ > 0) waitpid(pid_, &status, WUNTRACED);
  }
  // The exit code, or 1000 + signal.
  int Wait() {
    if (pid_ <= 0) return code_;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0) continue;
    pid_ = -1;
    return code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  bool Running() {
    if (pid_ <= 0) return false;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == 0) return true;
    pid_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return false;
  }

 private:
  pid_t pid_ = -1;
  int code_ = -1;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A server_main on a free port.
class ServerProcess {
 public:
  // `wrapper`: a command that runs it, such as {"strace", "-D"}; empty: none.
  ServerProcess(const std::string& program, const std::string& directory,
                std::vector<std::string> arguments = {},
                const std::vector<std::string>& wrapper = {})
      : log_(directory + ".log"),
        process_(wrapper.empty() ? program : wrapper[0],
                 WithDefaults(program, directory, std::move(arguments), wrapper), log_) {
    constexpr std::string_view kBefore = " on 127.0.0.1:";
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (port_ == 0 && process_.Running() && std::chrono::steady_clock::now() < deadline) {
      const std::string log = ReadFile(log_);
      const size_t at = log.find(kBefore);
      if (at != std::string::npos && log.find(',', at) != std::string::npos) {
        port_ = static_cast<uint16_t>(std::atoi(log.c_str() + at + kBefore.size()));
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  }

  // 0: it did not come up, log() says why.
  uint16_t port() const { return port_; }
  std::string log() const { return ReadFile(log_); }
  Process& process() { return process_; }

 private:
  static std::vector<std::string> WithDefaults(const std::string& program,
                                               const std::string& directory,
                                               std::vector<std::string> arguments,
                                               const std::vector<std::string>& wrapper) {
    arguments.insert(arguments.begin(), {"--dir=" + directory, "--port=0", "--http-port=0"});
    if (wrapper.empty()) return arguments;
    arguments.insert(arguments.begin(), program);
    arguments.insert(arguments.begin(), wrapper.begin() + 1, wrapper.end());
    return arguments;
  }

  const std::string log_;
  Process process_;
  uint16_t port_ = 0;
};

}  // namespace varve::testing
