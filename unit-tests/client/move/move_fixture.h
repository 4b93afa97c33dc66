// Two servers, and what is needed to move keys from one to the other.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/client.h"
#include "client/move/mover.h"
#include "client/move/page_reader.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {

using Words = std::vector<std::string>;
using Records = std::vector<MovedRecord>;

// A server that is started again on the same port and directory.
class MoveServer {
 public:
  MoveServer(std::string directory, Words flags)
      : directory_(std::move(directory)), flags_(std::move(flags)) {
    Start();
  }

  void Start() {
    process_.reset();
    Words flags = flags_;
    flags.push_back(fmt::format("--port={}", port_));
    process_.emplace(VARVE_SERVER_MAIN, directory_, flags);
    ASSERT_NE(process_->port(), 0) << process_->log();
    port_ = process_->port();
  }
  void Kill() {
    process_->process().Kill(SIGKILL);
    process_->process().Wait();
  }
  uint16_t port() const { return port_; }
  ClientOptions Options() const {
    ClientOptions options;
    options.port = port_;
    return options;
  }
  std::unique_ptr<Client> Connect(const std::string& space = "0") const {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(InSpace(Options(), space));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  // Returns what the space holds.
  Records Stored(const std::string& space) const {
    const std::unique_ptr<Client> client = Connect(space);
    const absl::StatusOr<Records> records = ReadRecords(client.get(), {}, 1'000'000);
    EXPECT_TRUE(records.ok()) << records.status();
    return records.ok() ? *records : Records();
  }
  // Returns what all spaces hold, but for databases without keys.
  std::map<std::string, Records> Everything() const {
    std::map<std::string, Records> all;
    const std::unique_ptr<Client> client = Connect();
    const absl::StatusOr<Reply> named = client->Call({"NAMESPACE", "LIST"});
    EXPECT_TRUE(named.ok()) << named.status();
    if (named.ok())
      for (const Reply& name : named->elements) all[name.text] = Stored(name.text);
    for (int database = 0; database < 16; ++database) {
      Records records = Stored(fmt::to_string(database));
      if (!records.empty()) all[fmt::to_string(database)] = std::move(records);
    }
    return all;
  }

 private:
  const std::string directory_;
  const Words flags_;
  uint16_t port_ = 0;
  std::optional<ServerProcess> process_;
};

class MoveTest : public ::testing::Test {
 protected:
  static absl::Status Do(Client* client, const Words& words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    return client->Call(views).status();
  }
  void AtSource(const std::string& space, const Words& words) {
    const std::unique_ptr<Client> client = source_.Connect(space);
    const absl::Status done = Do(client.get(), words);
    ASSERT_TRUE(done.ok()) << words[0] << ": " << done;
  }
  void AtTarget(const std::string& space, const Words& words) {
    const std::unique_ptr<Client> client = target_.Connect(space);
    const absl::Status done = Do(client.get(), words);
    ASSERT_TRUE(done.ok()) << words[0] << ": " << done;
  }
  // Writes something of every kind to the databases 0 to 2.
  static void WriteSomething(Client* client, std::mt19937* random, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("key:{}", (*random)() % 200);
      const std::string value = fmt::format("{}-{}", (*random)(), std::string(50, 'v'));
      Words words = {"SET", key, value};
      switch ((*random)() % 16) {
        case 0:
          words = {"DEL", key};
          break;
        case 1:
          words = {"SET", key, value, "META", "m" + value};
          break;
        case 2:
          words = {"SET", key, value, "PX", "100000000"};
          break;
        case 3:
          words = {"PERSIST", key};
          break;
        case 4:
          words = {"PEXPIRE", key, "200000000"};
          break;
        case 5:
          words = {"META", "SET", key, "other"};
          break;
        case 6:
          words = {"APPEND", key, "more"};
          break;
        case 7:
          words = {"MSET", key, value, key + "x", value};
          break;
        case 8:
          words = {"SELECT", fmt::to_string((*random)() % 3)};
          break;
        case 9:
          words = {"DELRANGE", "[" + key, "[" + key + "y"};
          break;
        default:
          break;
      }
      const absl::Status done = Do(client, words);
      ASSERT_TRUE(done.ok()) << words[0] << ": " << done;
    }
  }

  MoveOptions Options() const {
    MoveOptions options;
    options.source = source_.Options();
    options.target = target_.Options();
    options.until_caught_up = true;
    return options;
  }
  // Moves until nothing is behind, or as the options say. `stopped`: when it is to end before.
  absl::Status Move(
      const MoveOptions& options, Mover::Stopped stopped = [] { return false; }) {
    said_.clear();
    return Mover(options, std::move(stopped),
                 [this](const std::string& line) { said_ += line + "\n"; })
        .Run();
  }
  void ExpectEqual() { EXPECT_TRUE(source_.Everything() == target_.Everything()) << said_; }
  // The places that the source keeps changes for.
  size_t Feeds() const {
    const absl::StatusOr<Reply> feeds = source_.Connect()->Call({"FEED", "LIST"});
    EXPECT_TRUE(feeds.ok()) << feeds.status();
    return feeds.ok() ? feeds->elements.size() : 0;
  }

  TempDir dir_;
  MoveServer source_{dir_.File("source"), {"--sync=always"}};
  MoveServer target_{dir_.File("target"), {"--sync=always"}};
  std::string said_;
};

}  // namespace varve::testing
