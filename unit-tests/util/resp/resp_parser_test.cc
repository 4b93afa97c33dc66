#include "util/resp/resp_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace varve {
namespace {

using Result = RespParser::Result;
using Request = std::vector<std::string>;

struct Outcome {
  std::vector<Request> requests;
  std::string error;
  bool operator==(const Outcome& other) const = default;
};

// Feeds `pieces` one after the other, as a connection would: bytes move in memory between calls,
// consumed ones go.
Outcome Feed(const std::vector<std::string>& pieces, const RespLimits& limits = {}) {
  RespParser parser(limits);
  Outcome outcome;
  std::string pending;
  for (const std::string& piece : pieces) {
    pending = std::string(pending) + piece;  // a new place in memory
    while (true) {
      std::vector<std::string_view> arguments;
      size_t consumed = 0;
      const Result result = parser.Next(pending.data(), pending.size(), &arguments, &consumed);
      if (result == Result::kNeedMore) break;
      if (result == Result::kError) {
        outcome.error = parser.error();
        return outcome;
      }
      outcome.requests.emplace_back(arguments.begin(), arguments.end());
      pending.erase(0, consumed);
    }
  }
  return outcome;
}

Outcome Feed(const std::string& bytes, const RespLimits& limits = {}) {
  return Feed(std::vector<std::string>{bytes}, limits);
}

std::string ErrorOf(const std::string& bytes, const RespLimits& limits = {}) {
  return Feed(bytes, limits).error;
}

TEST(RespParserTest, ReadsArraysAndPlainLinesFromOneBuffer) {
  const Outcome outcome =
      Feed("*2\r\n$3\r\nGET\r\n$0\r\n\r\nPING\r\n\r\n*0\r\nset a  'b c'\n*-1\r\n");
  const std::vector<Request> expected = {{"GET", ""}, {"PING"}, {}, {}, {"set", "a", "b c"}, {}};
  EXPECT_EQ(outcome.requests, expected);
  EXPECT_EQ(outcome.error, "");
}

TEST(RespParserTest, ARequestIsBoundedAsAWhole) {
  RespLimits limits;
  limits.max_request = 28;
  EXPECT_EQ(Feed("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvw\r\n", limits).error, "");  // 28 bytes
  EXPECT_EQ(ErrorOf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\n", limits),
            "ERR Protocol error: too big request");
}

TEST(RespParserTest, ArgumentsHoldAnyBytes) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
  const Outcome outcome = Feed("*2\r\n$256\r\n" + every + "\r\n$4\r\n\r\n\r\n\r\n");
  EXPECT_EQ(outcome.requests, (std::vector<Request>{{every, "\r\n\r\n"}}));
}

TEST(RespParserTest, EverySplitGivesTheSameRequests) {
  const std::string bytes =
      "*3\r\n$3\r\nSET\r\n$5\r\nk\r\ney\r\n$10\r\n0123456789\r\nput \"a\\x00\\n\" "
      "'it\\'s'\r\n*1\r\n$4\r\nPING\r\n";
  const Outcome whole = Feed(bytes);
  ASSERT_EQ(whole.requests.size(), 3u);
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      const std::vector<std::string> pieces = {
          bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)};
      ASSERT_EQ(Feed(pieces), whole) << "split at " << first << " and " << second;
    }
  }
  std::vector<std::string> single;
  for (const char c : bytes) single.emplace_back(1, c);
  EXPECT_EQ(Feed(single), whole);
}

TEST(RespParserTest, PlainLinesFollowTheQuotingRules) {
  EXPECT_EQ(Feed("PUT city:1 \"Z\xc3\xbcrich West\"\r\n").requests,
            (std::vector<Request>{{"PUT", "city:1", "Z\xc3\xbcrich West"}}));
  EXPECT_EQ(Feed("a \"\\n\\r\\t\\b\\a\\x41\\xfF\\q\\\\\\\"\" 'x\\n\\'y'\n").requests,
            (std::vector<Request>{{"a",
                                   "\n\r\t\b\a"
                                   "A\xff"
                                   "q\\\"",
                                   "x\\n'y"}}));
  EXPECT_EQ(Feed("a \"\" '' b\n").requests, (std::vector<Request>{{"a", "", "", "b"}}));
  EXPECT_EQ(Feed("a pre\"fix\"\n").requests, (std::vector<Request>{{"a", "prefix"}}));
  EXPECT_EQ(Feed("a \"\\xg1\\x4\"\n").requests, (std::vector<Request>{{"a", "xg1x4"}}));
  EXPECT_EQ(Feed("\t a \t b \n").requests, (std::vector<Request>{{"a", "b"}}));
  for (const char* unbalanced :
       {"a \"b\n", "a 'b\n", "a \"b\"c\n", "a 'b'c\n", "\"\n", "a \"b\\\"\n"}) {
    EXPECT_EQ(ErrorOf(unbalanced), "ERR Protocol error: unbalanced quotes in request")
        << unbalanced;
  }
}

TEST(RespParserTest, ErrorsAreWordedAsRedisDoes) {
  EXPECT_EQ(ErrorOf("*x\r\n"), "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1048577\r\n"), "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*99999999999999999999\r\n"), "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*+1\r\n"), "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$-1\r\n"), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$01\r\n"), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$536870913\r\n"), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$abc\r\n"), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\nPING\r\n"), "ERR Protocol error: expected '$', got 'P'");
  EXPECT_EQ(ErrorOf("*1\r\n$4\r\nPINGxx"), "ERR Protocol error: expected CRLF after bulk");
  const std::string line(64 * 1024 + 1, 'a');
  EXPECT_EQ(ErrorOf(line), "ERR Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf(line + "\r\n"), "ERR Protocol error: too big inline request");
  const std::string digits(64 * 1024 + 1, '1');
  EXPECT_EQ(ErrorOf("*" + digits), "ERR Protocol error: too big mbulk count string");
  EXPECT_EQ(ErrorOf("*1\r\n$" + digits), "ERR Protocol error: too big bulk count string");
}

// The length of a header was checked only while its end was missing: 65,537 digits were an error,
// and with a CR behind them a request to wait for.
//
// Which bytes of a header came together must not change the answer.
TEST(RespParserTest, AHeaderIsTooLongWhetherItsEndHasComeOrNot) {
  const std::string digits(64 * 1024 + 1, '1');
  for (const std::string end : {"", "\r", "\r\n"}) {
    EXPECT_EQ(ErrorOf("*" + digits + end), "ERR Protocol error: too big mbulk count string");
    EXPECT_EQ(ErrorOf("*1\r\n$" + digits + end), "ERR Protocol error: too big bulk count string");
  }
}

TEST(RespParserTest, ATlsHelloIsAnErrorAtOnce) {
  EXPECT_EQ(ErrorOf(std::string("\x16\x03\x01\x02\x00\x01\x00", 7)),
            "ERR Protocol error: TLS is not spoken on this port");
}

TEST(RespParserTest, SaysHowMuchIsMissing) {
  RespParser parser;
  std::string bytes = "*1\r\n$1000\r\nabc";
  std::vector<std::string_view> arguments;
  size_t consumed = 0;
  EXPECT_EQ(parser.Next(bytes.data(), bytes.size(), &arguments, &consumed), Result::kNeedMore);
  EXPECT_EQ(parser.missing(), 1000u + 2 - 3);
}

TEST(RespParserTest, RequestsBeforeAnErrorAreRead) {
  const Outcome outcome = Feed("*1\r\n$4\r\nPING\r\n*1\r\n!");
  EXPECT_EQ(outcome.requests, (std::vector<Request>{{"PING"}}));
  EXPECT_EQ(outcome.error, "ERR Protocol error: expected '$', got '!'");
}

// Any bytes at all: no crash, and the same outcome however they are cut.
TEST(RespParserTest, RandomBytesCutAtRandomGiveOneOutcome) {
  std::mt19937 random(7);
  const std::string alphabet = "*$0123\r\n\r\n\r\nab\"' \\x";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = random() % 2 == 0 ? "*2\r\n$1\r\n" : "";
    const size_t length = random() % 40;
    for (size_t i = 0; i < length; ++i) bytes.push_back(alphabet[random() % alphabet.size()]);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 5;
      pieces.push_back(bytes.substr(at, size));
      at += size;
    }
    ASSERT_EQ(Feed(pieces), Feed(bytes)) << bytes;
  }
}

TEST(ParseRespIntegerTest, TakesWhatRedisTakes) {
  int64_t value = 0;
  EXPECT_TRUE(ParseRespInteger("9223372036854775807", &value));
  EXPECT_EQ(value, INT64_MAX);
  EXPECT_TRUE(ParseRespInteger("-9223372036854775808", &value));
  EXPECT_EQ(value, INT64_MIN);
  EXPECT_TRUE(ParseRespInteger("0", &value));
  EXPECT_EQ(value, 0);
  for (const char* wrong :
       {"", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "0x1", "9223372036854775808",
        "-9223372036854775809", "99999999999999999999", "184467440737095516150"}) {
    EXPECT_FALSE(ParseRespInteger(wrong, &value)) << wrong;
  }
}

TEST(ParseRespCountTest, TakesWhatIsNotNegative) {
  uint64_t count = 1;
  EXPECT_TRUE(ParseRespCount("0", &count));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(ParseRespCount("9223372036854775807", &count));
  EXPECT_EQ(count, uint64_t{INT64_MAX});
  for (const char* wrong : {"", "-1", "-0", "+1", "01", " 1", "9223372036854775808"})
    EXPECT_FALSE(ParseRespCount(wrong, &count)) << wrong;
}

}  // namespace
}  // namespace varve
