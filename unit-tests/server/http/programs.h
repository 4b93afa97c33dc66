// Programs of Prometheus that tests run where they are installed (packages-test.txt).
#pragma once

#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "unit-tests/server/test_server.h"

namespace varve::testing {

inline bool HasProgram(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

// Runs a command of the shell; returns what it says, and its exit code in the last line.
inline std::string Output(const std::string& command) {
  std::string output;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  char bytes[4096];
  for (size_t got; (got = std::fread(bytes, 1, sizeof(bytes), pipe)) > 0;)
    output.append(bytes, got);
  const int status = ::pclose(pipe);
  return output + "exit " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

// A port that nobody listened on a moment ago.
inline uint16_t FreePort() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

}  // namespace varve::testing
