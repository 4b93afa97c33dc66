// A connection in RESP3 that collects what the server pushes to it (CLIENT TRACKING).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/reply_text.h"

namespace varve::testing {

class CachingClient {
 public:
  using Pushes = std::vector<std::string>;

  explicit CachingClient(uint16_t port, int protocol = 3) {
    ClientOptions options;
    options.port = port;
    options.protocol = protocol;
    options.timeout = std::chrono::seconds(60);
    options.reconnect_for = std::chrono::milliseconds(0);
    options.on_push = [this](const Reply& push) { pushes_.push_back(ReplyText(push)); };
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  Client& client() { return *client_; }
  std::string Do(const std::vector<std::string>& arguments) { return Ask(*client_, arguments); }
  std::string id() { return Do({"CLIENT", "ID"}); }

  // All pushes that were on their way when another client got a reply. They may leave behind the
  // reply to the first PING.
  Pushes Take() {
    EXPECT_EQ(Do({"PING"}), "PONG");
    EXPECT_EQ(Do({"PING"}), "PONG");
    return std::exchange(pushes_, {});
  }

 private:
  Pushes pushes_;
  std::unique_ptr<Client> client_;
};

}  // namespace varve::testing
