#include "util/resp/resp_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "util/resp/resp_reply.h"

namespace varve {
namespace {

std::string Written(int protocol, const std::function<void(RespWriter&)>& write) {
  ByteBuffer out;
  RespWriter writer(&out, protocol);
  write(writer);
  return std::string(out.view());
}

// What each protocol version sends for the same reply.
void ExpectWritten(const std::function<void(RespWriter&)>& write, const std::string& resp2,
                   const std::string& resp3) {
  EXPECT_EQ(Written(2, write), resp2);
  EXPECT_EQ(Written(3, write), resp3);
}

TEST(RespWriterTest, WritesEachType) {
  ExpectWritten([](RespWriter& w) { w.Ok(); }, "+OK\r\n", "+OK\r\n");
  ExpectWritten([](RespWriter& w) { w.Simple("PONG"); }, "+PONG\r\n", "+PONG\r\n");
  ExpectWritten([](RespWriter& w) { w.Error("ERR no\r\nway"); }, "-ERR no  way\r\n",
                "-ERR no  way\r\n");
  ExpectWritten([](RespWriter& w) { w.Error("ERR no way\n\r"); }, "-ERR no way\r\n",
                "-ERR no way\r\n");
  ExpectWritten([](RespWriter& w) { w.Integer(7); }, ":7\r\n", ":7\r\n");
  ExpectWritten([](RespWriter& w) { w.Integer(INT64_MIN); }, ":-9223372036854775808\r\n",
                ":-9223372036854775808\r\n");
  ExpectWritten([](RespWriter& w) { w.Bulk(""); }, "$0\r\n\r\n", "$0\r\n\r\n");
  ExpectWritten([](RespWriter& w) { w.Bulk(std::string_view("a\0\r\nb", 5)); },
                std::string("$5\r\na\0\r\nb\r\n", 11), std::string("$5\r\na\0\r\nb\r\n", 11));
  ExpectWritten([](RespWriter& w) { w.Null(); }, "$-1\r\n", "_\r\n");
  ExpectWritten([](RespWriter& w) { w.NullArray(); }, "*-1\r\n", "_\r\n");
  ExpectWritten([](RespWriter& w) { w.Array(12); }, "*12\r\n", "*12\r\n");
  ExpectWritten([](RespWriter& w) { w.Map(3); }, "*6\r\n", "%3\r\n");
  ExpectWritten([](RespWriter& w) { w.Set(3); }, "*3\r\n", "~3\r\n");
  ExpectWritten([](RespWriter& w) { w.Push(2); }, "*2\r\n", ">2\r\n");
  ExpectWritten([](RespWriter& w) { w.Verbatim("hi"); }, "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
}

TEST(RespReplyTest, ReadsWhatTheWriterWrites) {
  for (const int protocol : {2, 3}) {
    const std::string bytes = Written(protocol, [](RespWriter& w) {
      w.Map(2);
      w.Bulk("k");
      w.Integer(-5);
      w.Bulk("list");
      w.Array(3);
      w.Null();
      w.Simple("OK");
      w.Bulk("b\r\n");
    });
    Reply reply;
    size_t consumed = 0;
    ASSERT_EQ(ParseReply(bytes + "+next", &reply, &consumed), ReplyResult::kReply);
    EXPECT_EQ(consumed, bytes.size());
    ASSERT_EQ(reply.elements.size(), 4u);
    EXPECT_EQ(reply.elements[1].integer, -5);
    EXPECT_TRUE(reply.elements[3].elements[0].is_null());
    EXPECT_EQ(reply.elements[3].elements[2].text, "b\r\n");
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_EQ(ParseReply(bytes.substr(0, length), &reply, &consumed), ReplyResult::kNeedMore)
          << length;
    }
  }
}

TEST(RespReplyTest, RefusesWhatIsNoReply) {
  Reply reply;
  size_t consumed = 0;
  EXPECT_EQ(ParseReply("HTTP/1.1 200 OK\r\n", &reply, &consumed), ReplyResult::kError);
  EXPECT_EQ(ParseReply(":12x\r\n", &reply, &consumed), ReplyResult::kError);
  EXPECT_EQ(ParseReply("$-2\r\n", &reply, &consumed), ReplyResult::kError);
  EXPECT_EQ(ParseReply("%9223372036854775807\r\n", &reply, &consumed), ReplyResult::kError);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "*1\r\n";
  EXPECT_EQ(ParseReply(deep, &reply, &consumed), ReplyResult::kError);
}

TEST(ByteBufferTest, KeepsItsContentThroughGrowthConsumingAndShrinking) {
  ByteBuffer buffer;
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string piece(static_cast<size_t>(i % 97), static_cast<char>('a' + i % 26));
    buffer.Append(piece);
    expected += piece;
    const size_t drop = expected.size() / 3;
    if (i % 5 == 0) {
      buffer.Consume(drop);
      expected.erase(0, drop);
    }
    ASSERT_EQ(buffer.view(), expected);
  }
  buffer.Append(std::string(1 << 20, 'x'));
  buffer.Consume(buffer.size() - 10);
  buffer.ShrinkAbove(4096);
  EXPECT_EQ(buffer.view(), std::string(10, 'x'));
  EXPECT_LE(buffer.capacity(), 4096u);
}

}  // namespace
}  // namespace varve
