#include "db/log/log_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>

namespace varve {
namespace {

std::string_view BytesOf(LogBuffer* buffer, size_t begin, size_t end) {
  return {buffer->data() + begin, end - begin};
}

TEST(LogBufferTest, RecordsOfABlockLieBehindItsHeaderOneAfterTheOther) {
  LogBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.Append("one", 1, 1, /*new_block=*/false), 0u);
  EXPECT_EQ(buffer.Append("three", 2, 4, /*new_block=*/false), 3u);
  ASSERT_EQ(buffer.blocks().size(), 1u);
  const LogBuffer::Block& block = buffer.blocks().front();
  EXPECT_EQ(block.first, 1u);
  EXPECT_EQ(block.last, 4u);
  EXPECT_EQ(BytesOf(&buffer, block.begin + kLogBlockHeaderSize, block.end), "onethree");
  EXPECT_EQ(buffer.records_size(0, 1), 8u);
  EXPECT_EQ(buffer.last_block_size(), kLogBlockHeaderSize + 8);
}

TEST(LogBufferTest, ANewBlockBeginsAtAMultipleOfEightBehindZeros) {
  LogBuffer buffer;
  buffer.Append("abc", 1, 1, false);
  EXPECT_EQ(buffer.Append("d", 2, 2, /*new_block=*/true), 0u);
  ASSERT_EQ(buffer.blocks().size(), 2u);
  const LogBuffer::Block& first = buffer.blocks()[0];
  const LogBuffer::Block& second = buffer.blocks()[1];
  EXPECT_EQ(second.begin % 8, 0u);
  EXPECT_EQ(BytesOf(&buffer, first.end, second.begin), std::string(second.begin - first.end, '\0'));
  EXPECT_EQ(buffer.last_block_first(), 2u);
  EXPECT_EQ(buffer.records_size(0, 2), 4u);
  EXPECT_EQ(buffer.records_size(1, 2), 1u);
}

TEST(LogBufferTest, GrowsWithWhatIsAppendedAndBeginsOnAPage) {
  LogBuffer buffer;
  std::string expected;
  for (SequenceNumber i = 1; i <= 200; ++i) {
    const std::string record(i * 7, static_cast<char>('a' + i % 26));
    buffer.Append(record, i, i, false);
    expected += record;
  }
  EXPECT_EQ(BytesOf(&buffer, kLogBlockHeaderSize, buffer.size()), expected);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kLogPageSize, 0u);
}

TEST(LogBufferTest, ThereIsAlwaysRoomForAPageOfPadding) {
  LogBuffer buffer;
  buffer.Append(std::string(5000, 'x'), 1, 1, false);
  buffer.PadEnd(kLogPageSize - 1);
  EXPECT_EQ(BytesOf(&buffer, buffer.size(), buffer.size() + kLogPageSize - 1),
            std::string(kLogPageSize - 1, '\0'));
}

TEST(LogBufferTest, ARecordMayBeCopiedLaterByAnotherThread) {
  LogBuffer buffer;
  LogCopy later;
  EXPECT_FALSE(later.is_due());
  buffer.Append("three", 1, 1, /*new_block=*/false, {}, &later);
  EXPECT_TRUE(later.is_due());
  EXPECT_EQ(buffer.Append("four", 2, 2, false), 5u);
  std::thread copier([&] { later.Make("three"); });
  buffer.AwaitCopies();
  const LogBuffer::Block& block = buffer.blocks().front();
  EXPECT_EQ(BytesOf(&buffer, block.begin + kLogBlockHeaderSize, block.end), "threefour");
  copier.join();
  EXPECT_FALSE(later.is_due());
}

// The memory to which a record is about to be copied stays where it is.
TEST(LogBufferTest, ABufferThatGrowsWaitsForCopies) {
  LogBuffer buffer;
  LogCopy later;
  buffer.Append("early", 1, 1, false, {}, &later);
  std::thread copier([&] { later.Make("early"); });
  const std::string large(1 << 20, 'l');
  buffer.Append(large, 2, 2, false);
  EXPECT_FALSE(later.is_due());
  const LogBuffer::Block& block = buffer.blocks().front();
  EXPECT_EQ(BytesOf(&buffer, block.begin + kLogBlockHeaderSize, block.end), "early" + large);
  copier.join();
}

TEST(LogBufferTest, GivesBackMemoryThatIsMoreThanItIsToKeep) {
  LogBuffer buffer;
  buffer.Append(std::string(100, 'x'), 1, 1, false);
  const char* const memory = buffer.data();
  buffer.Clear(1u << 20);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.data(), memory);
  buffer.Clear(0);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.Append("again", 2, 2, false), 0u);
}

}  // namespace
}  // namespace varve
