// A server and one client whose replies are compared as text. For tests of commands over a socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve::testing {

class CommandTest : public ::testing::Test {
 protected:
  // As ReplyText() gives it.
  std::string Do(const std::vector<std::string>& arguments) { return Ask(*client_, arguments); }
  static std::string Text(const Reply& reply) { return ReplyText(reply); }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

}  // namespace varve::testing
