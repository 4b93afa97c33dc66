// What a server tells of its keys (keyspace notifications), as lines "channel message".
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve::testing {

class EventLog {
 public:
  explicit EventLog(uint16_t port) : connection_(port) {
    const std::string confirmed = "*3\r\n$10\r\npsubscribe\r\n$6\r\n__key*\r\n:1\r\n";
    connection_.Send("PSUBSCRIBE __key*\r\n");
    EXPECT_EQ(connection_.Receive(confirmed.size()), confirmed);
  }

  // All that was told before `client` has its next reply. Keys and messages without line ends.
  std::vector<std::string> Take(Client& client) {
    EXPECT_EQ(Ask(client, {"PUBLISH", "__key end", "end"}), "1");
    std::vector<std::string> events;
    for (std::string event = Next(); event != "__key end end"; event = Next()) {
      if (event.empty()) return {"nothing comes"};
      events.push_back(event);
    }
    return events;
  }
  // The next message; empty when none comes.
  std::string Next() {
    // *4, $8, pmessage, $6, the pattern, $n, the channel, $n, the message.
    constexpr int kLines = 9;
    constexpr int kChannel = 6, kMessage = 8;
    std::string event;
    for (int line = 0; line < kLines; ++line) {
      std::string text;
      while (!text.ends_with("\r\n")) {
        const std::string byte = connection_.Receive(1);
        if (byte.empty()) return {};
        text += byte;
      }
      text.resize(text.size() - 2);
      if (line == kChannel) event = text + " ";
      if (line == kMessage) event += text;
    }
    return event;
  }

 private:
  RawConnection connection_;
};

}  // namespace varve::testing
