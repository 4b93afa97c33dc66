// A server and one client whose replies are compared as text. For tests of commands over a socket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/test_server.h"

namespace varve::testing {

class CommandTest : public ::testing::Test {
 protected:
  // The reply in one line: text, "nil", "(1 2 3)" for arrays, "!..." for errors.
  std::string Do(const std::vector<std::string>& arguments) {
    const std::vector<std::string_view> views(arguments.begin(), arguments.end());
    EXPECT_TRUE(client_->Send(views).ok());
    absl::StatusOr<Reply> reply = client_->Receive();
    return reply.ok() ? Text(*reply) : "lost: " + reply.status().ToString();
  }
  static std::string Text(const Reply& reply) {
    switch (reply.type) {
      case Reply::Type::kNull:
        return "nil";
      case Reply::Type::kError:
        return "!" + reply.text;
      case Reply::Type::kInteger:
      case Reply::Type::kBool:
        return std::to_string(reply.integer);
      case Reply::Type::kArray:
      case Reply::Type::kMap:
      case Reply::Type::kPush: {
        std::string text = "(";
        for (const Reply& element : reply.elements) text += (&element == &reply.elements[0] ? "" : " ") + Text(element);
        return text + ")";
      }
      default:
        return reply.text;
    }
  }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

}  // namespace varve::testing
