#include "structure/offset_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "util/base/checksum.h"
#include "util/base/hash.h"

namespace varve {
namespace {

constexpr uint64_t kFile = 42;

struct Table {
  explicit Table(OffsetTableBuilder* builder) {
    builder->Place();
    overflow = builder->overflow();
    page_count = builder->page_count();
    bytes.resize(size_t{page_count} * kOffsetTablePageSize);
    builder->WritePages(kFile, bytes.data());
  }
  OffsetTableView view() const { return {bytes.data(), page_count, overflow}; }

  std::string bytes;
  uint32_t page_count = 0;
  std::vector<OffsetTableOverflow> overflow;
};

bool Has(const OffsetTableCandidates& candidates, uint64_t offset, uint8_t length_class) {
  return std::any_of(candidates.begin(), candidates.end(), [=](const OffsetTableEntry& entry) {
    return entry.offset == offset && entry.length_class == length_class;
  });
}

OffsetTableCandidates Find(const OffsetTableView& view, uint64_t hash) {
  OffsetTableCandidates candidates;
  view.Lookup(hash, &candidates);
  // The short form must agree where it says something.
  OffsetTableEntry entry;
  const OffsetTableView::Only only = view.LookupOnly(hash, &entry);
  if (only == OffsetTableView::Only::kNone) EXPECT_TRUE(candidates.empty());
  if (only == OffsetTableView::Only::kOne) {
    EXPECT_EQ(candidates.size(), 1u);
    EXPECT_EQ(candidates.front().offset, entry.offset);
    EXPECT_EQ(candidates.front().length_class, entry.length_class);
  }
  return candidates;
}

TEST(LengthClassTest, EachClassHoldsItsSizesAndWastesLittle) {
  uint8_t last = 1;
  for (uint64_t size = 1; size <= (1 << 20); size += 1 + size / 1000) {
    const uint8_t length_class = LengthClassFor(size);
    ASSERT_GE(length_class, last) << size;
    last = length_class;
    if (length_class == kUnboundedLengthClass) {
      ASSERT_GT(size, LengthClassLimit(kUnboundedLengthClass - 1));
      continue;
    }
    ASSERT_GE(LengthClassLimit(length_class), size);
    if (length_class > 1) {
      ASSERT_LT(LengthClassLimit(length_class - 1), size) << "the smallest class that holds it";
    }
    if (size > 18) {
      ASSERT_LE(LengthClassLimit(length_class), size + size / 8 + 2);
    }
  }
  EXPECT_EQ(last, kUnboundedLengthClass);
  EXPECT_EQ(LengthClassLimit(126), 896u << 10);
  EXPECT_EQ(LengthClassFor(uint64_t{1} << 40), kUnboundedLengthClass);
}

class OffsetTableSizeTest : public ::testing::TestWithParam<size_t> {};

TEST_P(OffsetTableSizeTest, EachKeyIsFoundWithItsOffset) {
  OffsetTableBuilder builder;
  for (size_t i = 0; i < GetParam(); ++i)
    builder.Add(HashKey(std::to_string(i)), i * 100, i % 5000 + 1);
  const Table table(&builder);
  for (size_t i = 0; i < GetParam(); ++i) {
    const OffsetTableCandidates candidates = Find(table.view(), HashKey(std::to_string(i)));
    ASSERT_TRUE(Has(candidates, i * 100, LengthClassFor(i % 5000 + 1))) << i;
  }
  for (uint32_t page = 0; page < table.page_count; ++page) {
    EXPECT_TRUE(OffsetTablePageIsIntact(
        std::string_view(table.bytes).substr(page * kOffsetTablePageSize, kOffsetTablePageSize),
        kFile, page));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, OffsetTableSizeTest,
                         ::testing::Values(0, 1, 2, 8, 100, 432, 433, 434, 500, 5000, 200000));

TEST(OffsetTableTest, TheArithmeticInTheHeaderHolds) {
  constexpr size_t kKeys = 400000;
  OffsetTableBuilder builder;
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kKeys; ++i) builder.Add(random(), i, 100);
  const Table table(&builder);
  const double bytes_a_key =
      static_cast<double>(table.bytes.size() + table.overflow.size() * 24) / kKeys;
  EXPECT_LE(bytes_a_key, 9.5);
  EXPECT_LE(table.overflow.size(), kKeys / 4096 + 16);
  size_t false_positives = 0;
  constexpr size_t kMisses = 4000000;
  for (size_t i = 0; i < kMisses; ++i) false_positives += Find(table.view(), random()).size();
  EXPECT_LE(static_cast<double>(false_positives) / kMisses, 2e-5);
}

TEST(OffsetTableTest, ALookupInOnePageFindsWhatTheWholeTableDoes) {
  OffsetTableBuilder builder;
  for (size_t i = 0; i < 3000; ++i) builder.Add(HashKey(std::to_string(i)), i, 50);
  const Table table(&builder);
  ASSERT_GT(table.page_count, 5u);
  for (size_t i = 0; i < 3000; ++i) {
    const uint64_t hash = HashKey(std::to_string(i));
    const OffsetTablePlace place = OffsetTablePlace::Of(hash, table.page_count);
    const std::string page =
        table.bytes.substr(size_t{place.page} * kOffsetTablePageSize, kOffsetTablePageSize);
    OffsetTableCandidates candidates;
    LookupInOffsetTablePage(page.data(), place, hash, table.overflow, &candidates);
    ASSERT_TRUE(Has(candidates, i, LengthClassFor(50)));
  }
}

TEST(OffsetTableTest, KeysOfOneHashAllFindAPlace) {
  for (const size_t same : {2u, 8u, 16u, 17u, 100u, 2000u}) {
    OffsetTableBuilder builder;
    const uint64_t hash = HashKey("collision");
    for (size_t i = 0; i < same; ++i) builder.Add(hash, 1000000 + i, 20);
    for (size_t i = 0; i < 1000; ++i) builder.Add(HashKey(std::to_string(i)), i, 20);
    const Table table(&builder);
    const OffsetTableCandidates candidates = Find(table.view(), hash);
    for (size_t i = 0; i < same; ++i)
      ASSERT_TRUE(Has(candidates, 1000000 + i, LengthClassFor(20))) << same;
    for (size_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(Has(Find(table.view(), HashKey(std::to_string(i))), i, LengthClassFor(20)));
    }
  }
}

TEST(OffsetTableTest, SixteenKeysOfOneHashHaveSlots) {
  OffsetTableBuilder builder;
  for (size_t i = 0; i < 16; ++i) builder.Add(HashKey("collision"), i, 20);
  builder.Place();
  EXPECT_TRUE(builder.overflow().empty());
  builder.Add(HashKey("collision"), 16, 20);
  builder.Place();
  EXPECT_EQ(builder.overflow().size(), 1u);
}

TEST(OffsetTableTest, TheLargestOffsetFitsASlot) {
  OffsetTableBuilder builder;
  builder.Add(1, kMaxTableOffset, uint64_t{1} << 30);
  const Table table(&builder);
  EXPECT_TRUE(Has(Find(table.view(), 1), kMaxTableOffset, kUnboundedLengthClass));
}

TEST(OffsetTableTest, EachFlippedBitOfAPageIsFound) {
  OffsetTableBuilder builder;
  for (size_t i = 0; i < 100; ++i) builder.Add(HashKey(std::to_string(i)), i, 50);
  Table table(&builder);
  ASSERT_EQ(table.page_count, 1u);
  for (size_t bit = 0; bit < kOffsetTablePageSize * 8; ++bit) {
    table.bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ASSERT_FALSE(OffsetTablePageIsIntact(table.bytes, kFile, 0)) << bit;
    table.bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
  EXPECT_TRUE(OffsetTablePageIsIntact(table.bytes, kFile, 0));
  EXPECT_FALSE(OffsetTablePageIsIntact(table.bytes, kFile + 1, 0)) << "a page of another file";
  EXPECT_FALSE(OffsetTablePageIsIntact(table.bytes, kFile, 1)) << "a page in another place";
}

// Golden bytes: where a hash lies and how a slot is laid out is on disk, so it never changes.
TEST(OffsetTableTest, PagesAreTheseBytes) {
  OffsetTableBuilder builder;
  builder.Add(0x0123456789abcdef, 0x1122334455, 100);
  const Table table(&builder);
  const OffsetTablePlace place = OffsetTablePlace::Of(0x0123456789abcdef, 1);
  EXPECT_EQ(place.page, 0u);
  EXPECT_EQ(place.first_bucket, 33);
  EXPECT_EQ(place.fingerprint, 0x3cdefu);
  const size_t at = kOffsetTableHeaderSize + 33 * 64;
  EXPECT_EQ(DecodeFixed64(table.bytes.data() + at),
            uint64_t{0x3cdef} << 45 | uint64_t{0x1122334455} << 8 | 21 << 1);
  EXPECT_EQ(Checksum(table.bytes, 0), 518820329u) << "the whole page";
}

}  // namespace
}  // namespace varve
