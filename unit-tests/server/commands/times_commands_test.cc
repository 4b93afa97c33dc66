// TIME OF and VERSION AT TIME: when versions were committed.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ManualClock;
using testing::TestServer;

class TimesCommandsTest : public ::testing::Test {
 protected:
  static EngineOptions Options(const ManualClock* clock) {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = clock;
    return options;
  }
  std::string Do(const std::vector<std::string>& arguments) { return Ask(*client_, arguments); }
  // Writes the key and returns its version.
  uint64_t Set(const std::string& key) {
    EXPECT_EQ(Do({"SET", key, "value"}), "OK");
    return std::stoull(Do({"GET", key, "WITHVERSION"}).substr(7));
  }
  static std::string Number(uint64_t number) { return std::to_string(number); }

  ManualClock clock_;
  TestServer server_{{}, Options(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(TimesCommandsTest, TranslateVersionsAndInstants) {
  const uint64_t begin = clock_.WallMillis();
  EXPECT_EQ(Do({"VERSION", "AT", "TIME", std::to_string(begin)}), "nil") << "nothing was written";
  const uint64_t first = Set("a");
  clock_.Advance(7'000);
  const uint64_t second = Set("b");
  EXPECT_EQ(Do({"TIME", "OF", std::to_string(first)}), Number(begin));
  EXPECT_EQ(Do({"time", "of", std::to_string(second)}), Number(begin + 7'000));
  EXPECT_EQ(Do({"VERSION", "AT", "TIME", std::to_string(begin + 6'999)}), Number(first));
  EXPECT_EQ(Do({"version", "at", "time", std::to_string(begin + 7'000)}), Number(second));
  EXPECT_EQ(Do({"VERSION", "AT", "TIME", std::to_string(begin - 1)}), "nil");

  client_.reset();
  server_.Restart();
  client_ = server_.Connect();
  EXPECT_EQ(Do({"TIME", "OF", std::to_string(first)}), Number(begin));
  EXPECT_EQ(Do({"VERSION", "AT", "TIME", std::to_string(begin)}), Number(first));
}

TEST_F(TimesCommandsTest, MistakesAreTold) {
  EXPECT_EQ(Do({"TIME"}).front(), '(') << "as in Redis";
  for (const std::vector<std::string>& request :
       std::vector<std::vector<std::string>>{{"TIME", "OF"}, {"TIME", "AT", "1"}, {"TIME", "1"}}) {
    EXPECT_EQ(Do(request), "!ERR wrong number of arguments for 'time' command");
  }
  EXPECT_EQ(Do({"TIME", "OF", "-1"}), "!ERR a version is an integer, and 0 that of a missing key");
  EXPECT_EQ(Do({"VERSION", "OF", "TIME", "1"}), "!ERR syntax error");
  EXPECT_EQ(Do({"VERSION", "AT", "TIME", "soon"}),
            "!ERR the time is not a number of milliseconds since the epoch");
  const std::string future = Do({"TIME", "OF", "999999"});
  EXPECT_NE(future.find("version 999999 was not written yet"), std::string::npos) << future;
}

}  // namespace
}  // namespace varve
