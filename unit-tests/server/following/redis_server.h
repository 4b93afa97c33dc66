// Debian's redis-server on a free port, with its files in a directory of its own.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {

class RedisServer {
 public:
  // Whether redis-server is installed; tests that need it are skipped where it isn't.
  static bool IsInstalled() {
    return Process("/bin/sh", {"-c", "command -v redis-server >/dev/null"}).Wait() == 0;
  }

  // Returns a port that is free at present.
  static uint16_t FreePort() {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(descriptor);
    return ntohs(address.sin_port);
  }

  // `arguments`: further settings, as "--name", "value".
  explicit RedisServer(std::vector<std::string> arguments = {})
      : port_(FreePort()), arguments_(std::move(arguments)) {
    Start();
  }

  // Begins anew, with the data that it saved.
  void Restart() {
    process_.reset();
    Start();
  }
  void Stop() { process_.reset(); }

  uint16_t port() const { return port_; }
  std::string log() const { return ReadFile(dir_.File("log")); }

  // Null: it does not come up; log() says why. `password`: of the default user.
  std::unique_ptr<Client> Connect(const std::string& password = "") const {
    ClientOptions options;
    options.port = port_;
    options.password = password;
    std::unique_ptr<Client> client;
    (void)Eventually([&] {
      absl::StatusOr<std::unique_ptr<Client>> made = Client::Connect(options);
      if (!made.ok() || !(*made)->Ping().ok()) return false;
      client = *std::move(made);
      return true;
    });
    return client;
  }

 private:
  void Start() {
    std::vector<std::string> arguments = {"--port",
                                          std::to_string(port_),
                                          "--bind",
                                          "127.0.0.1",
                                          "--dir",
                                          dir_.File(""),
                                          "--save",
                                          "",
                                          "--repl-diskless-sync-delay",
                                          "0"};
    arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
    process_ = std::make_unique<Process>("redis-server", arguments, dir_.File("log"));
  }

  TempDir dir_;
  const uint16_t port_;
  const std::vector<std::string> arguments_;
  std::unique_ptr<Process> process_;
};

}  // namespace varve::testing
