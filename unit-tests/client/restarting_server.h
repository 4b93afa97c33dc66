// A server_main that a test stops, kills and starts again on the same port, and how clients reach
// it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {

class RestartingServer : public ::testing::Test {
 protected:
  void SetUp() override {
    Start({"--port=0"});
    ASSERT_NE(server_->port(), 0) << server_->log();
    options_.port = server_->port();
    options_.backoff_first = std::chrono::milliseconds(5);
  }
  // `password`: what it asks of clients from the next start on; options_ then has it, too.
  void UsePassword(const std::string& password) {
    std::ofstream(dir_.File("password")) << password << '\n';
    arguments_.push_back("--requirepass-file=" + dir_.File("password"));
    options_.password = password;
  }
  // A flag that it has from the next start on.
  void Use(const std::string& flag) { arguments_.push_back(flag); }
  // Where it listens, too, once it was started again.
  std::string Socket() const { return dir_.File("socket"); }

  void Kill() {
    server_->process().Kill(SIGKILL);
    server_->process().Wait();
  }
  void Restart() {
    server_.reset();
    Start({"--port=" + std::to_string(options_.port), "--unixsocket=" + Socket()});
    ASSERT_EQ(server_->port(), options_.port) << server_->log();
  }
  std::unique_ptr<Client> Connect() { return Connect(options_); }
  static std::unique_ptr<Client> Connect(const ClientOptions& options) {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  TempDir dir_;
  std::optional<ServerProcess> server_;
  ClientOptions options_;

 private:
  void Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
    server_.emplace(VARVE_SERVER_MAIN, dir_.File("data"), std::move(arguments));
  }

  std::vector<std::string> arguments_;
};

}  // namespace varve::testing
