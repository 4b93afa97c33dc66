#include "server/clients/monitors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/clients/client_memory.h"
#include "server/requests/command.h"

namespace varve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class MonitorsTest : public ::testing::Test {
 protected:
  MonitorsTest() {
    for (Mailbox& mailbox : mailboxes_) mailbox.Open(&limits_, [] {});
  }
  void Show(const std::vector<std::string_view>& arguments, uint32_t flags = 0) {
    const Command command{.name = arguments[0], .flags = flags};
    monitors_.Show(/*space=*/3, "10.0.0.5:4000", command, arguments);
  }
  std::string TakeAll(size_t index = 0) {
    ByteBuffer out;
    EXPECT_EQ(mailboxes_[index].TakeAll(&out, 3), kNoSequence);
    return std::string(out.view());
  }

  ClientMemory memory_;
  LiveOutputLimits limits_{OutputLimits{}};
  Mailbox mailboxes_[2];
  Monitors monitors_{&memory_};
};

TEST_F(MonitorsTest, EveryMonitorSeesTheCommandAsALine) {
  monitors_.Add(&mailboxes_[0]);
  monitors_.Add(&mailboxes_[1]);
  Show({"set", "key", "a value"});
  const std::string line = TakeAll(0);
  EXPECT_THAT(line, MatchesRegex("\\+[0-9]+\\.[0-9]+ .3 10.0.0.5:4000. "
                                 "\"set\" \"key\" \"a value\"\r\n"));
  EXPECT_EQ(TakeAll(1), line);
}

TEST_F(MonitorsTest, WhoIsRemovedSeesNothingMore) {
  EXPECT_FALSE(monitors_.any());
  monitors_.Add(&mailboxes_[0]);
  monitors_.Add(&mailboxes_[0]);
  EXPECT_TRUE(monitors_.any());
  monitors_.Remove(&mailboxes_[0]);
  EXPECT_FALSE(monitors_.any()) << "it was in there once";
  monitors_.Remove(&mailboxes_[0]);
  Show({"get", "key"});
  EXPECT_EQ(TakeAll(), "");
}

TEST_F(MonitorsTest, SecretsAreNotShown) {
  monitors_.Add(&mailboxes_[0]);
  Show({"auth", "the user", "the password"}, kSecretArguments);
  const std::string line = TakeAll();
  EXPECT_THAT(line, HasSubstr("\"auth\" \"(redacted)\" \"(redacted)\""));
  Show({"config", "set", "requirepass", "the password"}, kAdminCommand);
  EXPECT_EQ(TakeAll(), "") << "what administrators do may hold secrets";
}

TEST_F(MonitorsTest, NoByteOfAnArgumentEndsTheLine) {
  monitors_.Add(&mailboxes_[0]);
  Show({"get", std::string_view("a\r\n\t\"\\\0\xff", 8)});
  EXPECT_THAT(TakeAll(), EndsWith(" \"get\" \"a\\r\\n\\t\\\"\\\\\\x00\\xff\"\r\n"));
}

TEST_F(MonitorsTest, LongCommandsAreCut) {
  monitors_.Add(&mailboxes_[0]);
  const std::string large(100'000, 'x');
  Show({"set", "key", large});
  EXPECT_THAT(TakeAll(), EndsWith("x\"... (95904 more bytes)\r\n"));
  std::vector<std::string_view> arguments(1000, std::string_view(large).substr(0, 1000));
  arguments[0] = "mget";
  Show(arguments);
  const std::string line = TakeAll();
  EXPECT_LT(line.size(), 80'000u);
  EXPECT_THAT(line, EndsWith(" more arguments)\r\n"));
}

// One text lies in all mailboxes, and is counted until it has left the last.
TEST_F(MonitorsTest, ALineIsCountedOnce) {
  monitors_.Add(&mailboxes_[0]);
  monitors_.Add(&mailboxes_[1]);
  Show({"set", "key", std::string(1000, 'x')});
  const size_t counted = memory_.bytes();
  EXPECT_GE(counted, 1000u);
  EXPECT_LT(counted, 2000u);
  TakeAll(0);
  EXPECT_EQ(memory_.bytes(), counted);
  TakeAll(1);
  EXPECT_EQ(memory_.bytes(), 0u);
}

}  // namespace
}  // namespace varve
