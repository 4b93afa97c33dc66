// Runs client_main's import and export against a server_main of its own.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {

using Pairs = std::map<std::string, std::string>;

class ImportExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Start("--port=0");
    ASSERT_NE(server_->port(), 0) << server_->log();
    port_ = server_->port();
  }
  void Start(const std::string& port) {
    server_.emplace(VARVE_SERVER_MAIN, dir_.File("data"),
                    std::vector<std::string>{port, "--sync=no"});
  }
  std::unique_ptr<Client> Connect() {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect("127.0.0.1", port_, std::chrono::seconds(30));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  int Run(std::vector<std::string> arguments, const std::string& input = "/dev/null") {
    arguments.insert(arguments.begin(), "--port=" + std::to_string(port_));
    return Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out"), input).Wait();
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.File(name), std::ios::binary) << text;
  }

  void Fill(const Pairs& pairs) {
    const std::unique_ptr<Client> client = Connect();
    for (const auto& [key, value] : pairs) ASSERT_EQ(client->Put(key, value), absl::OkStatus());
  }
  Pairs Stored() {
    const Client::Pairs pairs = *Connect()->Range("-", "+");
    return Pairs(pairs.begin(), pairs.end());
  }
  void Empty() { ASSERT_EQ(Connect()->Call({"FLUSHALL"}).status(), absl::OkStatus()); }

  TempDir dir_;
  std::optional<ServerProcess> server_;
  uint16_t port_ = 0;
};

}  // namespace varve::testing
