// Bit commands and LCS over a socket: replies and errors as Redis 7.0 gives them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using namespace std::string_literals;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

class BitCommandsTest : public ::testing::Test {
 protected:
  // The reply's bytes, its line ends as blanks.
  std::string Do(const std::vector<std::string>& arguments) {
    connection_.Send(Resp(arguments) + "*1\r\n$4\r\nPING\r\n");
    std::string reply;
    while (!reply.ends_with("+PONG\r\n")) {
      const std::string byte = connection_.Receive(1);
      if (byte.empty()) return "lost: " + reply;
      reply += byte;
    }
    reply.resize(reply.size() - 9);
    for (size_t at = reply.find("\r\n"); at != std::string::npos; at = reply.find("\r\n"))
      reply.replace(at, 2, " ");
    return reply;
  }
  void Set(const std::string& key, const std::string& value) {
    EXPECT_EQ(Do({"SET", key, value}), "+OK");
  }

  TestServer server_;
  RawConnection connection_{server_.port()};
};

TEST_F(BitCommandsTest, SingleBits) {
  EXPECT_EQ(Do({"SETBIT", "k", "9", "1"}), ":0");
  EXPECT_EQ(Do({"SETBIT", "k", "9", "1"}), ":1");
  EXPECT_EQ(Do({"GET", "k"}), "$2 \0\x40"s);
  EXPECT_EQ(Do({"SETBIT", "k", "9", "0"}), ":1");
  EXPECT_EQ(Do({"SETBIT", "zeros", "16", "0"}), ":0");
  EXPECT_EQ(Do({"GET", "zeros"}), "$3 \0\0\0"s);
  EXPECT_EQ(Do({"GETBIT", "k", "4294967295"}), ":0");
  EXPECT_EQ(Do({"GETBIT", "none", "0"}), ":0");
  for (const char* offset : {"-1", "4294967296", "x", "", "01"}) {
    EXPECT_EQ(Do({"SETBIT", "k", offset, "1"}),
              "-ERR bit offset is not an integer or out of range");
    EXPECT_EQ(Do({"GETBIT", "k", offset}), "-ERR bit offset is not an integer or out of range");
  }
  for (const char* bit : {"2", "-1", "x", ""}) {
    EXPECT_EQ(Do({"SETBIT", "k", "1", bit}), "-ERR bit is not an integer or out of range");
  }
}

TEST_F(BitCommandsTest, CountsAndPositions) {
  Set("k", "foobar");
  EXPECT_EQ(Do({"BITCOUNT", "k"}), ":26");
  EXPECT_EQ(Do({"BITCOUNT", "k", "1", "1"}), ":6");
  EXPECT_EQ(Do({"BITCOUNT", "k", "5", "30", "bit"}), ":17");
  EXPECT_EQ(Do({"BITCOUNT", "k", "-9223372036854775808", "9223372036854775807", "BiT"}), ":26");
  EXPECT_EQ(Do({"BITCOUNT", "k", "1"}), "-ERR syntax error");
  EXPECT_EQ(Do({"BITCOUNT", "k", "0", "-1", "foo"}), "-ERR syntax error");
  EXPECT_EQ(Do({"BITCOUNT", "k", "-1", "-3", "foo"}), ":0");
  EXPECT_EQ(Do({"BITCOUNT", "none", "x"}), ":0");
  Set("ff", "\xff\xff");
  EXPECT_EQ(Do({"BITPOS", "ff", "0"}), ":16");
  EXPECT_EQ(Do({"BITPOS", "ff", "0", "1"}), ":16");
  EXPECT_EQ(Do({"BITPOS", "ff", "0", "0", "-1"}), ":-1");
  EXPECT_EQ(Do({"BITPOS", "ff", "0", "5"}), ":-1");
  EXPECT_EQ(Do({"BITPOS", "ff", "1", "9", "12", "BIT"}), ":9");
  EXPECT_EQ(Do({"BITPOS", "ff", "2"}), "-ERR The bit argument must be 1 or 0.");
  EXPECT_EQ(Do({"BITPOS", "ff", "1", "0", "x", "foo"}), "-ERR syntax error");
  EXPECT_EQ(Do({"BITPOS", "ff", "1", "0", "x"}), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"BITPOS", "none", "0"}), ":0");
  EXPECT_EQ(Do({"BITPOS", "none", "1"}), ":-1");
  Set("empty", "");
  EXPECT_EQ(Do({"BITPOS", "empty", "0"}), ":-1");
}

TEST_F(BitCommandsTest, CombinesValues) {
  Set("a", "\xf0\x0f");
  Set("b", "\x3c");
  EXPECT_EQ(Do({"BITOP", "and", "to", "a", "b"}), ":2");
  EXPECT_EQ(Do({"GET", "to"}), "$2 \x30\0"s);
  EXPECT_EQ(Do({"BITOP", "OR", "to", "a", "none", "b"}), ":2");
  EXPECT_EQ(Do({"GET", "to"}), "$2 \xfc\x0f");
  EXPECT_EQ(Do({"BITOP", "XOR", "a", "a", "a"}), ":2");
  EXPECT_EQ(Do({"GET", "a"}), "$2 \0\0"s);
  EXPECT_EQ(Do({"BITOP", "NOT", "a", "a"}), ":2");
  EXPECT_EQ(Do({"GET", "a"}), "$2 \xff\xff");
  EXPECT_EQ(Do({"BITOP", "NOT", "a", "none"}), ":0");
  EXPECT_EQ(Do({"EXISTS", "a"}), ":0");
  EXPECT_EQ(Do({"BITOP", "NOT", "a", "b", "b"}),
            "-ERR BITOP NOT must be called with a single source key.");
  EXPECT_EQ(Do({"BITOP", "NAND", "a", "b"}), "-ERR syntax error");
}

TEST_F(BitCommandsTest, FieldsReadAndWrite) {
  EXPECT_EQ(
      Do({"BITFIELD", "f", "SET", "u8", "#1", "255", "GET", "i8", "8", "INCRBY", "u8", "#1", "2"}),
      "*3 :0 :-1 :1");
  EXPECT_EQ(Do({"GET", "f"}), "$2 \0\x01"s);
  EXPECT_EQ(Do({"BITFIELD", "f", "OVERFLOW", "SAT", "INCRBY", "i8", "0", "200", "overflow", "fail",
                "incrby", "i8", "0", "1"}),
            "*2 :127 $-1");
  EXPECT_EQ(Do({"BITFIELD", "g", "OVERFLOW", "FAIL", "SET", "u8", "32", "300"}), "*1 $-1");
  EXPECT_EQ(Do({"GET", "g"}), "$5 \0\0\0\0\0"s);
  EXPECT_EQ(Do({"BITFIELD", "none", "GET", "u8", "100"}), "*1 :0");
  EXPECT_EQ(Do({"EXISTS", "none"}), ":0");
  EXPECT_EQ(Do({"BITFIELD", "f"}), "*0");
  EXPECT_EQ(Do({"BITFIELD_RO", "f", "GET", "u8", "0"}), "*1 :127");
  EXPECT_EQ(Do({"BITFIELD_RO", "f", "SET", "u8", "0", "1"}),
            "-ERR BITFIELD_RO only supports the GET subcommand");
  EXPECT_EQ(Do({"BITFIELD", "f", "GET", "u64", "0"}),
            "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
            "but i64 is.");
  EXPECT_EQ(Do({"BITFIELD", "f", "GET", "u8", "#536870912"}),
            "-ERR bit offset is not an integer or out of range");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "4294967295", "1"}),
            "-ERR bit offset is not an integer or out of range");
  EXPECT_EQ(Do({"BITFIELD", "f", "OVERFLOW", "x"}), "-ERR Invalid OVERFLOW type specified");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "0"}), "-ERR syntax error");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "0", "x"}),
            "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"GET", "f"}), "$2 \x7f\x01");
}

TEST_F(BitCommandsTest, WhatLeavesAValueAsItWasIsNotWritten) {
  const auto changes = [&] {
    const std::string info = Do({"INFO", "persistence"});
    const std::string name = "rdb_changes_since_last_save:";
    const size_t at = info.find(name);
    return at == std::string::npos
               ? "none"
               : info.substr(at + name.size(), info.find(' ', at) - at - name.size());
  };
  EXPECT_EQ(changes(), "0");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "0", "0"}), "*1 :0");  // made the key
  EXPECT_EQ(changes(), "1");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "0", "0", "GET", "u8", "0"}), "*2 :0 :0");
  EXPECT_EQ(Do({"BITFIELD", "f", "OVERFLOW", "FAIL", "SET", "u8", "0", "300", "INCRBY", "u8", "0",
                "300"}),
            "*2 $-1 $-1");
  EXPECT_EQ(Do({"SETBIT", "f", "0", "0"}), ":0");
  EXPECT_EQ(changes(), "1");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "0", "1"}), "*1 :0");
  EXPECT_EQ(Do({"BITFIELD", "f", "INCRBY", "u8", "0", "1"}), "*1 :2");
  EXPECT_EQ(Do({"BITFIELD", "f", "SET", "u8", "8", "0"}), "*1 :0");  // made the value longer
  EXPECT_EQ(changes(), "4");
  EXPECT_EQ(Do({"SAVE"}), "+OK");
  EXPECT_EQ(changes(), "0");
}

TEST_F(BitCommandsTest, CommonSubsequences) {
  Set("x", "ohmytext");
  Set("y", "mynewtext");
  EXPECT_EQ(Do({"LCS", "x", "y"}), "$6 mytext");
  EXPECT_EQ(Do({"LCS", "x", "y", "LEN"}), ":6");
  EXPECT_EQ(Do({"LCS", "x", "y", "idx", "minmatchlen", "3", "withmatchlen"}),
            "*4 $7 matches *1 *3 *2 :4 :7 *2 :5 :8 :4 $3 len :6");
  EXPECT_EQ(Do({"LCS", "x", "none"}), "$0 ");
  EXPECT_EQ(Do({"LCS", "x", "y", "IDX", "LEN"}),
            "-ERR If you want both the length and indexes, please just use IDX.");
  EXPECT_EQ(Do({"LCS", "x", "y", "MINMATCHLEN"}), "-ERR syntax error");
  Set("long", std::string(12'000, 'l'));
  EXPECT_EQ(Do({"LCS", "long", "long", "LEN"}),
            "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
}

TEST_F(BitCommandsTest, WritesAreAtomicAmongConnections) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  constexpr int kEach = 200;
  for (int i = 0; i < 8; ++i)
    connections.push_back(std::make_unique<RawConnection>(server_.port()));
  for (int n = 0; n < kEach; ++n) {
    for (auto& connection : connections) {
      connection->Send(Resp({"BITFIELD", "sum", "INCRBY", "u32", "0", "1"}));
    }
  }
  for (auto& connection : connections) {
    connection->FinishSending();
    connection->ReceiveAll();
  }
  EXPECT_EQ(Do({"BITFIELD", "sum", "GET", "u32", "0"}), "*1 :1600");
}

}  // namespace
}  // namespace varve
