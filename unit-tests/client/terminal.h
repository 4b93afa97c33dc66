// A client_main on a pseudo-terminal of its own, with what a person would type and see.
//
// Thread-safety: for one thread.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/testing/eventually.h"

namespace varve::testing {

class Terminal {
 public:
  Terminal(uint16_t port, const std::string& history, std::vector<std::string> arguments = {},
           unsigned short columns = 100, bool colours = true) {
    winsize size{24, columns, 0, 0};
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    setenv("TERM", "xterm", 1);
    setenv("VARVE_HISTORY", history.c_str(), 1);
    unsetenv("NO_COLOR");
    if (!colours) setenv("NO_COLOR", "1", 1);
    arguments.insert(arguments.begin(), {VARVE_CLIENT_MAIN, "--port=" + std::to_string(port)});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(VARVE_CLIENT_MAIN, argv.data());
    _exit(127);
  }
  ~Terminal() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
    close(terminal_);
  }

  void Type(std::string_view keys) {
    ASSERT_EQ(write(terminal_, keys.data(), keys.size()), ssize_t(keys.size()));
  }
  // Waits until the program has turned `flags` of the terminal's local modes off: ICANON, so that
  // it takes keys one by one, or ECHO, so that the terminal does not show what is typed.
  bool TurnsOff(tcflag_t flags) const {
    return Eventually([&] {
      termios modes{};
      return tcgetattr(terminal_, &modes) == 0 && (modes.c_lflag & flags) == 0;
    });
  }
  // Returns everything shown up to `text`, since the last call; what was shown without it after two
  // minutes.
  std::string ShownUntil(std::string_view text) {
    std::string& shown = shown_;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (shown.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      pollfd waiting{terminal_, POLLIN, 0};
      if (poll(&waiting, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(terminal_, buffer, sizeof(buffer));
      if (got <= 0) break;
      shown.append(buffer, static_cast<size_t>(got));
    }
    const size_t at = shown.find(text);
    const size_t end = at == std::string::npos ? shown.size() : at + text.size();
    const std::string seen = shown.substr(0, end);
    shown.erase(0, end);
    return seen;
  }
  // Returns everything until it ends.
  std::string ShownToTheEnd() { return ShownUntil("nothing that it ever says"); }
  int Wait(int options = 0) {
    int status = 0;
    if (pid_ <= 0 || waitpid(pid_, &status, options) <= 0) return code_;
    pid_ = -1;
    return code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Ctrl-D on an empty line until it has ended: one that is typed before the prompt takes keys is a
  // character.
  int End() {
    for (int i = 0; i < 1200 && pid_ > 0; ++i, Wait(WNOHANG)) {
      if (write(terminal_, "\x15\x04", 2) == 2) usleep(100'000);
    }
    return code_;
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  int code_ = -1;
  std::string shown_;
};

}  // namespace varve::testing

#define EXPECT_SHOWN(terminal, text)                                                \
  do {                                                                              \
    const std::string shown_ = (terminal).ShownUntil(text);                         \
    EXPECT_NE(shown_.find(text), std::string::npos) << "shown instead: " << shown_; \
  } while (false)
