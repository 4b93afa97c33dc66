#include "util/redis_format/rdb_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "util/redis_format/crc64.h"

namespace varve {
namespace {

using std::string_literals::operator""s;

// Bytes in memory, of which as few as possible are shown at a time.
class Bytes final : public RdbInput {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

  absl::StatusOr<std::string_view> Peek(size_t wanted) override {
    shown_ = bytes_.substr(offset_, wanted);
    return std::string_view(shown_);
  }
  void Consume(size_t bytes) override {
    ASSERT_LE(bytes, shown_.size());
    offset_ += bytes;
  }
  uint64_t offset() const override { return offset_; }
  absl::Status Damaged(std::string_view what) const override {
    return absl::DataLossError("at " + std::to_string(offset_) + ": " + std::string(what));
  }

 private:
  const std::string bytes_;
  std::string shown_;
  size_t offset_ = 0;
};

std::string String(const std::string& text) { return static_cast<char>(text.size()) + text; }

// An RDB of these items, with its checksum.
std::string Rdb(const std::string& items, const std::string& magic = "REDIS0012") {
  std::string bytes = magic + items + '\xFF';
  uint64_t crc = Crc64(0, bytes);
  for (int i = 0; i < 8; ++i, crc >>= 8) bytes.push_back(static_cast<char>(crc));
  return bytes;
}

struct Outcome {
  absl::Status status;
  std::vector<std::string> items;
  uint64_t offset = 0;
};

Outcome ReadAll(const std::string& bytes) {
  Bytes input(bytes);
  RdbReader reader(&input);
  Outcome outcome;
  RdbItem item;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(&item);
    outcome.status = found.status();
    if (!found.ok() || !*found) break;
    std::string text = std::to_string(item.database) + ' ' + std::string(item.key) + ' ';
    text +=
        item.passed_over.empty() ? '=' + std::string(item.value) : std::string(item.passed_over);
    if (item.expiry_ms != 0) text += " until " + std::to_string(item.expiry_ms);
    outcome.items.push_back(text);
  }
  outcome.offset = input.offset();
  return outcome;
}

// Returns the items of an RDB whose bytes are whole.
std::vector<std::string> Items(const std::string& items, const std::string& magic = "REDIS0012") {
  const std::string bytes = Rdb(items, magic);
  const Outcome outcome = ReadAll(bytes + "what follows");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.offset, bytes.size());
  return outcome.items;
}

// The key "k" of the type, and a string behind it, which shows that the value ended where it does.
std::vector<std::string> Value(int type, const std::string& value,
                               const std::string& magic = "REDIS0012") {
  return Items(static_cast<char>(type) + String("k") + value + '\0' + String("s") + String("v"),
               magic);
}
std::vector<std::string> PassedOver(const std::string& type) { return {"0 k " + type, "0 s =v"}; }

TEST(RdbReaderTest, StringsHaveDatabasesAndExpiries) {
  const std::string about = "\xFA" + String("redis-ver") + String("7.0.15");
  const std::string sizes = "\xFB\x02\x01"s;
  EXPECT_EQ(Items(about + "\xFE\x00"s + sizes + "\x00"s + String("a") + String("1") +
                  "\xFC\x01\x02\x00\x00\x00\x00\x00\x00"s + "\x00"s + String("b") + "\xC0\xFE" +
                  "\xFE\x07"s + "\xFD\x02\x00\x00\x00"s + "\xF9\x05\x00"s + String("c") +
                  "\xC1\x00\x01"s),
            (std::vector<std::string>{"0 a =1", "0 b =-2 until 513", "7 c =256 until 2000"}));
}

TEST(RdbReaderTest, ValuesOfOtherTypesArePassedOver) {
  const std::string two = String("x") + String("y");
  const std::string eight(8, '\x11');
  EXPECT_EQ(Value(1, "\x02" + two), PassedOver("list"));
  EXPECT_EQ(Value(18, "\x01\x02" + String("x")), PassedOver("list"));
  EXPECT_EQ(Value(2, "\x02" + two), PassedOver("set"));
  EXPECT_EQ(Value(4, "\x01" + two), PassedOver("hash"));
  EXPECT_EQ(Value(24, eight + "\x01\x05" + two), PassedOver("hash"));
  EXPECT_EQ(Value(5, "\x01" + String("x") + eight), PassedOver("sorted set"));
  EXPECT_EQ(Value(3, "\x02" + String("x") + "\xFE" + String("y") + String("1.5")),
            PassedOver("sorted set"));
  EXPECT_EQ(Value(7, "\x81" + eight + "\x02\x05\x05" + String("x") + "\x00"s),
            PassedOver("module type"));
}

TEST(RdbReaderTest, StreamsOfAllVersionsArePassedOver) {
  const std::string id(16, '\x01');
  const std::string time(8, '\x02');
  const std::string nodes = "\x01" + String(id) + String("entries");
  const std::string counters = "\x01\x01\x01\x01\x01\x01\x01\x01";
  const std::string group = String("group") + "\x01\x01\x01" + "\x01" + id + time + "\x01";
  const std::string consumer = "\x01" + String("me") + time + time + "\x01" + id;
  EXPECT_EQ(Value(15, nodes + "\x01\x01\x01" + "\x00"s), PassedOver("stream"));
  EXPECT_EQ(Value(21, nodes + counters + "\x01" + group + consumer), PassedOver("stream"));
  const std::string producers =
      "\x01\x02\x01" + String("producer") + "\x01" + String("iid") + "\x03\x04" + "\x05\x06";
  EXPECT_EQ(Value(26, nodes + counters + "\x00"s + producers), PassedOver("stream"));
  EXPECT_EQ(Value(27, nodes + counters + "\x01" + group + consumer + "\x01" + id + producers),
            PassedOver("stream"));
}

TEST(RdbReaderTest, ValkeyHasItsOwnForms) {
  const std::string timed = "\x01" + String("f") + String("v") + std::string(8, '\x01');
  EXPECT_EQ(Value(22, timed, "VALKEY080"), PassedOver("hash"));
  EXPECT_EQ(Items("\xF3" + String("job") + "\x01\x05\x06" + "\x00"s + String("a") + String("1"),
                  "VALKEY080"),
            std::vector<std::string>{"0 a =1"});
}

TEST(RdbReaderTest, WhatModulesAndFunctionsKeepIsPassedOver) {
  EXPECT_EQ(Items("\xF3\x01" + std::string(4, 'c') + "\x02\x05\x00"s + "\x00"s + String("a") +
                  String("1")),
            std::vector<std::string>{"0 a =1"});
  EXPECT_EQ(Items("\xF5" + String("#!lua") + "\xF7\x01\x02\x02\x05"s + String("x") + "\x00"s),
            (std::vector<std::string>{"0  library of functions", "0  module data"}));
}

TEST(RdbReaderTest, DamageIsFound) {
  const std::string whole = Rdb("\x00"s + String("key") + String("value"));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ReadAll(whole.substr(0, size)).status.code(), absl::StatusCode::kDataLoss) << size;
  std::string flipped = whole;
  flipped[12] ^= 1;  // in the key
  EXPECT_EQ(ReadAll(flipped).status.code(), absl::StatusCode::kDataLoss);
  const Outcome unknown = ReadAll(Rdb("\x1C" + String("k")));
  EXPECT_EQ(unknown.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(unknown.status.message().find("type or opcode 28"), absl::string_view::npos);
}

TEST(RdbReaderTest, VersionsThatAreNotKnownAreToldFromDamage) {
  for (const char* magic : {"REDIS0000", "REDIS0016", "VALKEY081"}) {
    EXPECT_EQ(ReadAll(Rdb("", magic)).status.code(), absl::StatusCode::kFailedPrecondition)
        << magic;
  }
  EXPECT_EQ(ReadAll("REDIS00x1").status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadAll("SIDER0012").status.code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace varve
