// Payloads of DUMP and RESTORE: golden bytes that redis-server 7.0 wrote, damage, and the options
// of RESTORE.
#include "server/commands/dump_payload.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit-tests/server/command_fixture.h"
#include "util/redis_format/crc64.h"
#include "util/redis_format/lzf.h"

namespace varve {
namespace {

using namespace std::string_literals;

constexpr size_t kMost = 1u << 20;

const std::string kOne = "\x00\xc0\x01\n\x00&x\xe7\xb6\xd1\x01\x11\xfc"s;
const std::string kHello = "\x00\x05hello\n\x00"s + "cr\xdfve4 \n"s;
const std::string kCompressed =
    "\x00\xc3\t(\x01"s + "aa\xe0\x1b\x00\x01"s + "aa\n\x00\xcf\t/\xaa\xae%\x83\x1d"s;
const std::string kList =
    "\x12\x01\x02\t\t\x00\x00\x00\x01\x00\x01\x01\xff\n\x00\x10\x82\x8f\x92\t\xb3\xf4"s + "F";

// With a version and a checksum behind it.
std::string Sealed(std::string payload, char version = 10) {
  payload += version;
  payload += '\0';
  const uint64_t crc = Crc64(0, payload);
  for (int shift = 0; shift < 64; shift += 8) payload.push_back(static_cast<char>(crc >> shift));
  return payload;
}

TEST(DumpPayloadTest, AreThoseOfRedis) {
  EXPECT_EQ(EncodeDumpPayload("1"), kOne);
  EXPECT_EQ(EncodeDumpPayload("hello"), kHello);
  EXPECT_EQ(DecodeDumpPayload(kOne, kMost), "1");
  EXPECT_EQ(DecodeDumpPayload(kHello, kMost), "hello");
  EXPECT_EQ(DecodeDumpPayload(kCompressed, kMost), std::string(40, 'a'));
  EXPECT_EQ(DecodeDumpPayload(kCompressed, 39), std::nullopt);
  for (const std::string& payload : {kOne, kHello, kCompressed, kList}) {
    EXPECT_TRUE(IsDumpPayload(payload));
    for (size_t i = 0; i < payload.size(); ++i) {
      std::string damaged = payload;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      EXPECT_FALSE(IsDumpPayload(damaged)) << i;
      EXPECT_FALSE(IsDumpPayload(payload.substr(0, i))) << i;
    }
  }
  EXPECT_EQ(DecodeDumpPayload(kList, kMost), std::nullopt);
}

TEST(DumpPayloadTest, ValuesComeBack) {
  std::vector<std::string> values = {"", "-", "-1", "0", "-0", "01", "+1", "1.0", " 1", "a\0b"s};
  for (const int64_t edge : {int64_t{1} << 7, int64_t{1} << 15, int64_t{1} << 31}) {
    for (int64_t number = edge - 2; number <= edge + 1; ++number) {
      values.push_back(std::to_string(number));
      values.push_back(std::to_string(-number));
    }
  }
  for (const size_t size : {63, 64, 16383, 16384, 100000}) values.emplace_back(size, 'v');
  for (const std::string& value : values) {
    const std::string payload = EncodeDumpPayload(value);
    EXPECT_TRUE(IsDumpPayload(payload));
    EXPECT_EQ(DecodeDumpPayload(payload, kMost), value);
  }
  EXPECT_EQ(EncodeDumpPayload("-2147483648").size(), 1u + 5 + 10);
  EXPECT_EQ(DecodeDumpPayload(EncodeDumpPayload("hello"), 4), std::nullopt);
}

TEST(DumpPayloadTest, WhatMakesNoSenseIsNoValue) {
  EXPECT_FALSE(IsDumpPayload(""));
  EXPECT_TRUE(IsDumpPayload(Sealed("\0\1a"s, 12)));
  EXPECT_FALSE(IsDumpPayload(Sealed("\0\1a"s, 13)));
  for (const std::string& body :
       {""s, "\0"s, "\0\2a"s, "\0\xc0"s, "\0\xc1\1"s, "\0\xc2\1\1\1"s, "\0\xc4\1"s, "\0\x40"s,
        "\0\x80\0\0\0"s, "\0\x82\0\0\0\0"s, "\0\x81\xff\xff\xff\xff\xff\xff\xff\xff"s,
        "\0\xc3\1\1"s, "\0\xc3\2\5\0a"s, "\0\xc3\3\1\x20\0\0"s, "\0\xc3\xc0\1\0"s, "\1\1a"s,
        "\xff"s}) {
    ASSERT_TRUE(IsDumpPayload(Sealed(body)));
    EXPECT_EQ(DecodeDumpPayload(Sealed(body), kMost), std::nullopt) << body.size();
  }
}

using DumpTest = testing::CommandTest;

TEST_F(DumpTest, RestoreMakesTheKey) {
  EXPECT_EQ(Do({"DUMP", "k"}), "nil");
  Do({"SET", "k", "hello"});
  EXPECT_EQ(Do({"DUMP", "k"}), kHello);
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne}), "!BUSYKEY Target key name already exists.");
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne, "replace"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "1");
  EXPECT_EQ(Do({"RESTORE", "l", "100000", kCompressed}), "OK");
  EXPECT_EQ(Do({"STRLEN", "l"}), "40");
  EXPECT_EQ(Do({"TTL", "l"}), "100");
  EXPECT_EQ(Do({"TTL", "k"}), "-1");
  EXPECT_EQ(Do({"RESTORE", "l", "99999999999999", kOne, "ABSTTL", "REPLACE", "IDLETIME", "5"}),
            "OK");
  EXPECT_EQ(Do({"PEXPIRETIME", "l"}), "99999999999999");
  // What is over already makes nothing, and replaces by nothing.
  EXPECT_EQ(Do({"RESTORE", "m", "1", kOne, "ABSTTL"}), "OK");
  EXPECT_EQ(Do({"EXISTS", "m"}), "0");
  EXPECT_EQ(Do({"RESTORE", "l", "1", kOne, "ABSTTL", "REPLACE", "FREQ", "255"}), "OK");
  EXPECT_EQ(Do({"EXISTS", "l"}), "0");
  Restart();
  EXPECT_EQ(Do({"GET", "k"}), "1");
}

TEST_F(DumpTest, RestoreRefuses) {
  EXPECT_EQ(Do({"RESTORE", "k", "0", kList}), "!ERR Bad data format");
  EXPECT_EQ(Do({"RESTORE", "k", "0", "junk"}), "!ERR DUMP payload version or checksum are wrong");
  EXPECT_EQ(Do({"RESTORE", "k", "-1", kOne}), "!ERR Invalid TTL value, must be >= 0");
  EXPECT_EQ(Do({"RESTORE", "k", "9223372036854775807", kOne}),
            "!ERR Invalid TTL value, must be >= 0");
  EXPECT_EQ(Do({"RESTORE", "k", "x", kOne}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne, "WHAT"}), "!ERR syntax error");
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne, "IDLETIME"}), "!ERR syntax error");
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne, "IDLETIME", "-1"}),
            "!ERR Invalid IDLETIME value, must be >= 0");
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne, "FREQ", "256"}),
            "!ERR Invalid FREQ value, must be >= 0 and <= 255");
  EXPECT_EQ(Do({"RESTORE", "k", "0", kOne, "FREQ", "1", "IDLETIME", "1"}), "!ERR syntax error");
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
}

TEST_F(DumpTest, AlsoInsideExec) {
  Do({"MULTI"});
  Do({"RESTORE", "k", "0", kOne});
  Do({"DUMP", "k"});
  Do({"RESTORE", "k", "0", kOne});
  EXPECT_EQ(Do({"EXEC"}), "(OK " + kOne + " !BUSYKEY Target key name already exists.)");
}

}  // namespace
}  // namespace varve
