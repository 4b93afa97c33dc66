// Commands on strings and numbers over a socket: replies and errors as Redis 7.0 gives them (8.4
// for comparisons).
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

using namespace std::string_literals;

using StringCommandsTest = testing::CommandTest;

constexpr const char* kTooLong = "!ERR string exceeds maximum allowed size (proto-max-bulk-len)";
constexpr const char* kNoInteger = "!ERR value is not an integer or out of range";
constexpr const char* kNoFloat = "!ERR value is not a valid float";
constexpr const char* kSyntax = "!ERR syntax error";

TEST_F(StringCommandsTest, SetRefusesContradictions) {
  for (const char* option : {"EX", "px", "EXAT", "PxAt"}) {
    EXPECT_EQ(Do({"SET", "k", "v", option, "0"}), "!ERR invalid expire time in 'set' command");
    EXPECT_EQ(Do({"SET", "k", "v", option, "-1"}), "!ERR invalid expire time in 'set' command");
    EXPECT_EQ(Do({"SET", "k", "v", option, "x"}), kNoInteger);
    EXPECT_EQ(Do({"SET", "k", "v", option}), kSyntax);
    EXPECT_EQ(Do({"SET", "k", "v", option, "10", "KEEPTTL"}), kSyntax);
  }
  EXPECT_EQ(Do({"SET", "k", "v", "EX", "9223372036854775807"}),
            "!ERR invalid expire time in 'set' command");
  EXPECT_EQ(Do({"SET", "k", "v", "PX", "9223372036854775807"}),
            "!ERR invalid expire time in 'set' command");
  EXPECT_EQ(Do({"SET", "k", "v", "EX", "10", "PX", "10"}), kSyntax);
  EXPECT_EQ(Do({"SET", "k", "v", "what"}), kSyntax);
  EXPECT_EQ(Do({"SET", "k", "v", "XX", "GET", "NX"}), kSyntax);
  EXPECT_EQ(Do({"SET", "k"}), "!ERR wrong number of arguments for 'set' command");
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
  EXPECT_EQ(Do({"SET", "k", "v", "GET", "GET", "NX", "NX"}), "nil");
  EXPECT_EQ(Do({"GET", "k"}), "v");
}

TEST_F(StringCommandsTest, SetComparesWithTheValue) {
  EXPECT_EQ(Do({"SET", "k", "1", "IFEQ", "0"}), "nil");
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
  EXPECT_EQ(Do({"SET", "k", "1", "IFNE", "0"}), "OK");  // a missing key is equal to nothing
  EXPECT_EQ(Do({"SET", "k", "2", "IFEQ", "1"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "3", "ifeq", "1"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "3", "IFEQ", "1", "GET"}), "2");
  EXPECT_EQ(Do({"SET", "k", "3", "GET", "IFNE", "1"}), "2");
  EXPECT_EQ(Do({"SET", "k", "4", "IFNE", "3"}), "nil");
  EXPECT_EQ(Do({"GET", "k"}), "3");
  EXPECT_EQ(Do({"SET", "k", "4", "IFEQ"}), kSyntax);
  EXPECT_EQ(Do({"SET", "k", "4", "IFEQ", "3", "NX"}), kSyntax);
  EXPECT_EQ(Do({"SET", "k", "4", "XX", "IFEQ", "3"}), kSyntax);
  EXPECT_EQ(Do({"SET", "k", "4", "IFEQ", "3", "IFNE", "5"}), kSyntax);
}

TEST_F(StringCommandsTest, SetComparesWithTheDigest) {
  EXPECT_EQ(Do({"SET", "k", "hello", "IFDEQ", "9555e8555c62dcfd"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "hello", "IFDNE", "9555e8555c62dcfd"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "x", "IFDNE", "9555E8555c62dcfd"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "x", "IFDEQ", "zzzzzzzzzzzzzzzz"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "x", "IFDEQ", "955"}),
            "!ERR must be exactly 16 hexadecimal characters");
  EXPECT_EQ(Do({"SET", "k", "x", "IFDEQ", "9555E8555C62DCFD"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "x");
}

TEST_F(StringCommandsTest, DigestIsXxh3) {
  for (const auto& [value, digest] :
       std::vector<std::pair<std::string, std::string>>{{"hello", "9555e8555c62dcfd"},
                                                        {"", "2d06800538d394c2"},
                                                        {"123", "404a763b3f4c8c9a"},
                                                        {"v8", "0cc76dbb41381419"}}) {
    Do({"SET", "k", value});
    EXPECT_EQ(Do({"DIGEST", "k"}), digest);
  }
  EXPECT_EQ(Do({"DIGEST", "none"}), "nil");
  EXPECT_EQ(Do({"DIGEST", "k", "k"}), "!ERR wrong number of arguments for 'digest' command");
}

TEST_F(StringCommandsTest, DelExDeletesWhatIsAsExpected) {
  EXPECT_EQ(Do({"DELEX", "k"}), "0");
  EXPECT_EQ(Do({"DELEX", "k", "WHAT", "x"}), "0");
  Do({"SET", "k", "hello"});
  EXPECT_EQ(Do({"DELEX", "k", "WHAT", "x"}),
            "!ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
  EXPECT_EQ(Do({"DELEX", "k", "IFDEQ", "x"}), "!ERR must be exactly 16 hexadecimal characters");
  EXPECT_EQ(Do({"DELEX", "k", "IFEQ"}), "!ERR wrong number of arguments for 'delex' command");
  EXPECT_EQ(Do({"DELEX", "k", "IFEQ", "a", "b"}),
            "!ERR wrong number of arguments for 'delex' command");
  EXPECT_EQ(Do({"DELEX", "k", "IFEQ", "x"}), "0");
  EXPECT_EQ(Do({"DELEX", "k", "IFNE", "hello"}), "0");
  EXPECT_EQ(Do({"DELEX", "k", "IFDEQ", "0000000000000000"}), "0");
  EXPECT_EQ(Do({"DELEX", "k", "IFDNE", "9555e8555c62dcfd"}), "0");
  EXPECT_EQ(Do({"EXISTS", "k"}), "1");
  EXPECT_EQ(Do({"DELEX", "k", "ifdeq", "9555e8555c62dcfd"}), "1");
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
  for (const std::vector<std::string>& condition : std::vector<std::vector<std::string>>{
           {}, {"IFEQ", "v"}, {"IFNE", "w"}, {"IFDNE", "0000000000000000"}}) {
    Do({"SET", "k", "v"});
    std::vector<std::string> line = {"DELEX", "k"};
    line.insert(line.end(), condition.begin(), condition.end());
    EXPECT_EQ(Do(line), "1");
    EXPECT_EQ(Do({"EXISTS", "k"}), "0");
  }
}

TEST_F(StringCommandsTest, OldValuesAndFirstValues) {
  EXPECT_EQ(Do({"GETSET", "k", "1"}), "nil");
  EXPECT_EQ(Do({"GETSET", "k", "2"}), "1");
  EXPECT_EQ(Do({"GETDEL", "k"}), "2");
  EXPECT_EQ(Do({"GETDEL", "k"}), "nil");
  EXPECT_EQ(Do({"SETNX", "k", ""}), "1");
  EXPECT_EQ(Do({"SETNX", "k", "x"}), "0");
  EXPECT_EQ(Do({"GET", "k"}), "");
  EXPECT_EQ(Do({"MSETNX", "a", "1", "b", "2", "a", "3"}), "1");
  EXPECT_EQ(Do({"MSETNX", "c", "1", "b", "9"}), "0");
  EXPECT_EQ(Do({"MGET", "a", "b", "c"}), "(3 2 nil)");
  EXPECT_EQ(Do({"MSETNX", "a", "1", "b"}), "!ERR wrong number of arguments for 'msetnx' command");
}

TEST_F(StringCommandsTest, PartsOfValues) {
  EXPECT_EQ(Do({"APPEND", "k", ""}), "0");
  EXPECT_EQ(Do({"EXISTS", "k"}), "1");
  EXPECT_EQ(Do({"APPEND", "k", "Hello"}), "5");
  EXPECT_EQ(Do({"APPEND", "k", ""}), "5");
  EXPECT_EQ(Do({"STRLEN", "k"}), "5");
  EXPECT_EQ(Do({"STRLEN", "none"}), "0");
  EXPECT_EQ(Do({"SETRANGE", "k", "1", "ipp"}), "5");
  EXPECT_EQ(Do({"SETRANGE", "k", "4", "ies"}), "7");
  EXPECT_EQ(Do({"SETRANGE", "k", "9", "!"}), "10");
  EXPECT_EQ(Do({"SETRANGE", "k", "99", ""}), "10");
  EXPECT_EQ(Do({"GET", "k"}), "Hippies\0\0!"s);
  EXPECT_EQ(Do({"SETRANGE", "none", "5", ""}), "0");
  EXPECT_EQ(Do({"SETRANGE", "none", "536870912", ""}), "0");
  EXPECT_EQ(Do({"EXISTS", "none"}), "0");
  EXPECT_EQ(Do({"SETRANGE", "k", "-1", "x"}), "!ERR offset is out of range");
  EXPECT_EQ(Do({"SETRANGE", "k", "a", "x"}), kNoInteger);
  EXPECT_EQ(Do({"SETRANGE", "k", "536870912", "x"}), kTooLong);
  EXPECT_EQ(Do({"SETRANGE", "k", "536870911", "xy"}), kTooLong);
  EXPECT_EQ(Do({"SETRANGE", "k", "9223372036854775807", "xy"}), kTooLong);
  Do({"SET", "k", "012345"});
  const std::vector<std::vector<std::string>> parts = {
      {"0", "-1", "012345"},
      {"-3", "-1", "345"},
      {"-1", "-3", ""},
      {"-100", "-90", "0"},
      {"3", "100", "345"},
      {"6", "9", ""},
      {"2", "1", ""},
      {"0", "0", "0"},
      {"-6", "-5", "01"},
      {"-90", "-100", ""},
      {"-9223372036854775808", "9223372036854775807", "012345"}};
  for (const std::vector<std::string>& part : parts) {
    EXPECT_EQ(Do({"GETRANGE", "k", part[0], part[1]}), part[2]) << part[0] << " " << part[1];
    EXPECT_EQ(Do({"SUBSTR", "k", part[0], part[1]}), part[2]);
  }
  EXPECT_EQ(Do({"GETRANGE", "none", "0", "-1"}), "");
  EXPECT_EQ(Do({"GETRANGE", "k", "x", "1"}), kNoInteger);
  EXPECT_EQ(Do({"GETRANGE", "k", "0"}), "!ERR wrong number of arguments for 'getrange' command");
}

TEST_F(StringCommandsTest, Integers) {
  EXPECT_EQ(Do({"DECR", "n"}), "-1");
  EXPECT_EQ(Do({"INCRBY", "n", "10"}), "9");
  EXPECT_EQ(Do({"DECRBY", "n", "20"}), "-11");
  EXPECT_EQ(Do({"DECRBY", "n", "-1"}), "-10");
  for (const char* bad : {"x", "", "1.0", " 1", "9223372036854775808"}) {
    EXPECT_EQ(Do({"INCRBY", "n", bad}), kNoInteger);
    EXPECT_EQ(Do({"DECRBY", "n", bad}), kNoInteger);
  }
  EXPECT_EQ(Do({"DECRBY", "n", "-9223372036854775808"}), "!ERR decrement would overflow");
  EXPECT_EQ(Do({"INCRBY", "n", "-9223372036854775807"}),
            "!ERR increment or decrement would overflow");
  EXPECT_EQ(Do({"GET", "n"}), "-10");
  EXPECT_EQ(Do({"INCRBY", "n", "-9223372036854775798"}), "-9223372036854775808");
  EXPECT_EQ(Do({"DECR", "n"}), "!ERR increment or decrement would overflow");
  Do({"SET", "n", "text"});
  EXPECT_EQ(Do({"DECR", "n"}), kNoInteger);
  Restart();
  EXPECT_EQ(Do({"GET", "n"}), "text");
}

TEST_F(StringCommandsTest, Floats) {
  const std::vector<std::vector<std::string>> sums = {
      {"", "1.5", "1.5"},
      {"1.5", "5.0e3", "5001.5"},
      {"0x10", "0x1", "17"},
      {"3", "1e-5", "3.00001"},
      {"3.00001", "-1.1", "1.90001"},
      {"0.1", "0.2", "0.3"},
      {"-0", "-0", "0"},
      {"1e-30", "0", "0"},
      {"-1e-30", "0", "0"},
      {"", "12345678901234567890.123", "12345678901234567890"},
      {"3", "-3", "0"},
      {"10", "190", "200"},
      {"1e20", "0", "100000000000000000000"}};
  for (const std::vector<std::string>& sum : sums) {
    Do({"DEL", "f"});
    if (!sum[0].empty()) Do({"SET", "f", sum[0]});
    EXPECT_EQ(Do({"INCRBYFLOAT", "f", sum[1]}), sum[2]) << sum[0] << " + " << sum[1];
    EXPECT_EQ(Do({"GET", "f"}), sum[2]);
  }
  Do({"SET", "f", "3"});
  for (const char* bad : {"", "abc", " 1", "1 ", "nan", "--", "1e5000", "1e-5000", "1,5"}) {
    EXPECT_EQ(Do({"INCRBYFLOAT", "f", bad}), kNoFloat) << bad;
    Do({"SET", "bad", bad});
    EXPECT_EQ(Do({"INCRBYFLOAT", "bad", "1"}), kNoFloat) << bad;
  }
  EXPECT_EQ(Do({"INCRBYFLOAT", "f", std::string(6000, '1')}), kNoFloat);
  constexpr const char* kInfinite = "!ERR increment would produce NaN or Infinity";
  for (const char* infinite : {"inf", "+inf", "-Infinity"})
    EXPECT_EQ(Do({"INCRBYFLOAT", "f", infinite}), kInfinite);
  Do({"SET", "f", "1e4932"});
  EXPECT_EQ(Do({"INCRBYFLOAT", "f", "1e4932"}), kInfinite);
  EXPECT_EQ(Do({"INCRBYFLOAT", "f", "1"}).size(), 4933u);
}

TEST_F(StringCommandsTest, WhatManyClientsDoAtOnceIsNotLost) {
  constexpr int kClients = 8;
  constexpr int kRounds = 100;
  std::vector<std::thread> threads;
  std::atomic<int> first{0};
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<Client> client = server_.Connect();
      const auto call = [&](const std::vector<std::string>& line) {
        const std::vector<std::string_view> views(line.begin(), line.end());
        EXPECT_TRUE(client->Send(views).ok());
        const absl::StatusOr<Reply> reply = client->Receive();
        EXPECT_TRUE(reply.ok() && !reply->is_error()) << reply.status();
        return reply.ok() ? Text(*reply) : std::string();
      };
      for (int round = 0; round < kRounds; ++round) {
        call({"INCRBY", "sum", "3"});
        call({"APPEND", "log", std::to_string(i)});
        if (call({"SET", "first" + std::to_string(round), "x", "NX"}) == "OK") ++first;
        for (bool swapped = false; !swapped;) {  // the same sum, by comparing and setting
          const std::string old = call({"GET", "compared"});
          const std::string sum = std::to_string((old == "nil" ? 0 : std::stoi(old)) + 1);
          swapped = call(old == "nil" ? std::vector<std::string>{"SET", "compared", sum, "NX"}
                                      : std::vector<std::string>{"SET", "compared", sum, "IFEQ",
                                                                 old}) == "OK";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Restart();
  EXPECT_EQ(Do({"GET", "sum"}), std::to_string(3 * kClients * kRounds));
  EXPECT_EQ(Do({"STRLEN", "log"}), std::to_string(kClients * kRounds));
  EXPECT_EQ(Do({"GET", "compared"}), std::to_string(kClients * kRounds));
  EXPECT_EQ(first, kRounds);
}

}  // namespace
}  // namespace varve
