// Debian's redis-server as a process of its own: a second server to hold the client against, and
// the source of RDB and AOF files.
#pragma once

#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/server_process.h"

namespace varve::testing {

class RedisProcess {
 public:
  // Whether redis-server is installed; tests that need it are skipped where it isn't.
  static bool IsInstalled() {
    return Process("/bin/sh", {"-c", "command -v redis-server >/dev/null"}).Wait() == 0;
  }

  // Serves a Unix socket in `directory`, which exists, with its files there too.
  explicit RedisProcess(const std::string& directory, std::vector<std::string> arguments = {})
      : socket_(directory + "/redis.sock"), log_(directory + "/redis.log") {
    arguments.insert(arguments.begin(),
                     {"--port", "0", "--unixsocket", socket_, "--dir", directory, "--save", ""});
    process_ = std::make_unique<Process>("redis-server", arguments, log_);
  }

  const std::string& socket() const { return socket_; }
  std::string log() const { return ReadFile(log_); }
  Process& process() { return *process_; }

  ClientOptions Options() const {
    ClientOptions options;
    options.unix_socket = socket_;
    return options;
  }
  // Waits for the server to come up. Null: it didn't, log() says why.
  std::unique_ptr<Client> Connect(ClientOptions options) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (process_->Running() && std::chrono::steady_clock::now() < deadline) {
      if (auto client = Client::Connect(options); client.ok() && (*client)->Ping().ok())
        return *std::move(client);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return nullptr;
  }
  std::unique_ptr<Client> Connect() { return Connect(Options()); }

 private:
  const std::string socket_;
  const std::string log_;
  std::unique_ptr<Process> process_;
};

}  // namespace varve::testing
