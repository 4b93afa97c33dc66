// A server whose followers and whose primary are what a test says they are: the test writes the
// shared state that the connections of followers, and the link to a primary, write otherwise.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve::testing {

class ReplicationTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  explicit ReplicationTest(const ServerOptions& options = {},
                           const EngineOptions& engine = TestServer::SmallEngine())
      : server_(options, engine) {
    // What a link would do, without one.
    state().calls.follow = [this](const PrimaryAddress& primary) {
      if (refuses_to_follow_) return absl::FailedPreconditionError("a test's refusal");
      state().replication.SetPrimary(primary);
      return absl::OkStatus();
    };
    // As the connections of followers do when one tells something.
    state().replication.followers.OnChange([this] { state().clients.changes.Wake(); });
  }

  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  ServerState& state() { return server_.server().state(); }
  FollowerTable& followers() { return state().replication.followers; }

  void Join(const std::string& id, uint16_t port, bool copies = false) {
    const auto now = std::chrono::steady_clock::now();
    followers().Join({.id = id,
                      .address = "10.0.0.7",
                      .port = port,
                      .online = !copies,
                      .connected = now,
                      .told = now});
  }
  void Note(const std::string& id, SequenceNumber version) {
    EXPECT_TRUE(followers().Note(id, version, version, std::chrono::steady_clock::now()));
  }
  void Link(LinkPhase phase, const std::string& error = "") {
    state().replication.UpdateLink([&](LinkReport& link) {
      link.phase = phase;
      link.error = error;
      link.last_io = std::chrono::steady_clock::now();
    });
  }

  SequenceNumber Version() { return std::stoull(Do({"CLIENT", "VERSION"})); }
  // The value of a line of INFO.
  std::string Info(const std::string& section, const std::string& name) {
    const std::string info = "\n" + Do({"INFO", section});
    const size_t at = info.find("\n" + name + ":");
    if (at == std::string::npos) return "(none)";
    const size_t begin = at + name.size() + 2;
    return info.substr(begin, info.find('\r', begin) - begin);
  }

  bool refuses_to_follow_ = false;
  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

}  // namespace varve::testing
