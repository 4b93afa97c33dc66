#include "db/hbase/row_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "db/hbase/version_clock.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

TEST(RowCodecTest, PrefixesAscendAndLeaveOneByteOut) {
  for (const int left_out : {0, 1, 58, 0xff}) {
    const auto byte = static_cast<uint8_t>(left_out);
    std::string before;
    for (const HbaseGeneration generation :
         {0u, 1u, 57u, 58u, 59u, 253u, 254u, 255u, 256u, 65'024u, 65'025u, 16'581'375u,
          kLastGeneration - 1, kLastGeneration}) {
      const std::string prefix = RowPrefix(generation, byte);
      EXPECT_EQ(prefix.size(), kRowPrefixSize);
      EXPECT_EQ(prefix.find(static_cast<char>(byte)), std::string::npos) << generation;
      EXPECT_GT(prefix, before) << generation;
      EXPECT_EQ(RowBehindPrefix(prefix, byte), RowPrefix(generation + 1, byte));
      before = prefix;
    }
  }
}

TEST(RowCodecTest, EveryRowOfAPrefixIsBeforeTheRowBehindIt) {
  const std::string prefix = RowPrefix(7, 0xff);
  EXPECT_LT(prefix + std::string(100, '\xff'), RowBehindPrefix(prefix, 0xff));
}

std::vector<HbaseCell> Cells() {
  static const std::string large(100'000, 'v');
  static const std::string metadata(65'536, 'm');
  return {{.version = 1, .writer = 2},
          {.version = 1, .writer = 2, .is_tombstone = true},
          {.version = 7u << 20, .writer = 0xffffffff, .expiry_ms = 5, .value = "v"},
          {.version = ~uint64_t{0}, .writer = 0, .metadata = "m", .value = large},
          {.version = 3,
           .writer = 4,
           .expiry_ms = ~uint64_t{0} - 1,
           .metadata = metadata,
           .value = large}};
}

TEST(RowCodecTest, ACellIsReadAsItWasWritten) {
  for (const HbaseCell& cell : Cells()) {
    const std::string bytes = EncodeCell(cell);
    const std::optional<HbaseCell> read = DecodeCell(bytes);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->version, cell.version);
    EXPECT_EQ(read->writer, cell.writer);
    EXPECT_EQ(read->is_tombstone, cell.is_tombstone);
    EXPECT_EQ(read->expiry_ms, cell.expiry_ms);
    EXPECT_EQ(read->metadata, cell.metadata);
    EXPECT_EQ(read->value, cell.value);
    EXPECT_TRUE(bytes.starts_with(CellVersionBytes(cell.version)));
    const std::optional<HbaseCell> header = DecodeCellHeader(bytes.substr(0, kMaxCellHeader));
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->value_size, cell.value.size());
    EXPECT_EQ(header->metadata_size, cell.metadata.size());
    EXPECT_EQ(header->expiry_ms, cell.expiry_ms);
  }
}

TEST(RowCodecTest, WhatIsNoCellIsToldFromOne) {
  EXPECT_FALSE(DecodeCell("").has_value());
  EXPECT_FALSE(DecodeCell("a value of somebody else's").has_value());
  const std::string bytes = EncodeCell({.version = 9, .writer = 1, .expiry_ms = 4, .value = "v"});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeCell(bytes.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(DecodeCell(bytes + 'x').has_value());
  std::string other_format = bytes;
  other_format[12] = static_cast<char>(0x20);
  EXPECT_FALSE(DecodeCell(other_format).has_value());
  std::string unknown_flag = bytes;
  unknown_flag[12] = static_cast<char>(unknown_flag[12] | 8);
  EXPECT_FALSE(DecodeCell(unknown_flag).has_value());
}

TEST(RowCodecTest, TheTestsOfGoneCellsPassThemAndNoOthers) {
  const auto passes = [](const HbaseValueTest& test, const std::string& bytes) {
    return std::all_of(test.begin(), test.end(), [&](const HbaseValueRange& range) {
      EXPECT_EQ(range.least.size(), range.most.size());
      EXPECT_GE(bytes.size(), range.offset + range.least.size());
      const std::string part = bytes.substr(range.offset, range.least.size());
      return range.least <= part && part <= range.most;
    });
  };
  for (const uint64_t now : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40, UINT64_MAX - 1}) {
    const std::vector<HbaseValueTest> tests = TestsOfGone(now);
    std::vector<HbaseCell> cells = Cells();
    for (const uint64_t expiry : {now + 1, now, now / 2})
      cells.push_back({.version = 9, .expiry_ms = expiry, .value = "v"});
    for (const HbaseCell& cell : cells) {
      const std::string bytes = EncodeCell(cell);
      const bool passes_any = std::any_of(tests.begin(), tests.end(),
                                          [&](const auto& test) { return passes(test, bytes); });
      EXPECT_EQ(passes_any, cell.IsGone(now)) << now << " " << cell.expiry_ms;
    }
  }
}

TEST(VersionClockTest, VersionsAscendWhateverTheClockDoes) {
  testing::ManualClock manual;
  VersionClock clock(&manual);
  const SequenceNumber first = clock.Next(kNoSequence);
  EXPECT_EQ(VersionClock::MillisOf(first), manual.WallMillis());
  EXPECT_EQ(clock.Next(kNoSequence), first + 1);
  const SequenceNumber ahead = VersionClock::At(manual.WallMillis() + 1'000'000);
  EXPECT_EQ(clock.Next(ahead), ahead + 1);
  EXPECT_EQ(clock.Next(first), ahead + 2);
}

TEST(VersionClockTest, VersionsAreAboveTheFloor) {
  testing::ManualClock manual;
  VersionClock clock(&manual);
  const SequenceNumber floor = VersionClock::At(manual.WallMillis() + 5);
  clock.RaiseFloor(floor);
  clock.RaiseFloor(floor - 3);
  EXPECT_EQ(clock.floor(), floor);
  EXPECT_EQ(clock.Next(kNoSequence), floor + 1);
}

}  // namespace
}  // namespace varve
