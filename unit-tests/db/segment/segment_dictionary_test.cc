// A segment of compressed values: what stands in its file, who is charged for its dictionary, and
// that its reader gives plain values.
#include "db/segment/segment_dictionary.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "db/compression/dictionary_training.h"
#include "db/compression/value_codec.h"
#include "db/segment/segment_iterator.h"
#include "fmt/format.h"
#include "tools/segment_verifier.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/segment_fixture.h"
#include "util/base/coding.h"

namespace varve {
namespace {

using testing::NumberedKey;
using testing::SegmentFixture;

constexpr Compression kZstd{CompressionMethod::kZstd, kDefaultZstdLevel};
constexpr Compression kLz4{CompressionMethod::kLz4, 0};

std::string ValueOf(uint64_t number) {
  return fmt::format(R"({{"number":{},"name":"customer {}","city":"Hamburg","state":"{}"}})",
                     number, number * 7919 % 1000, number % 3 == 0 ? "waiting" : "served");
}

std::shared_ptr<const ValueDictionary> TrainedDictionary() {
  ValueSamples samples;
  for (uint64_t i = 0; i < 2000; ++i) samples.Add(ValueOf(i));
  return ChooseDictionary(samples, nullptr, kDefaultZstdLevel, 4096);
}

// Every fourth value is plain, the others are compressed with the dictionary, by zstd alone where
// that saves anything, and by LZ4.
SegmentInfo Build(SegmentFixture& fixture, uint64_t number, uint64_t keys,
                  const std::shared_ptr<const ValueDictionary>& dictionary) {
  auto builder = SegmentBuilder::Create(PosixFileSystem(), {.directory = fixture.directory.path(),
                                                            .number = number,
                                                            .caches = fixture.caches.get(),
                                                            .dictionary = dictionary});
  EXPECT_TRUE(builder.ok()) << builder.status();
  ValueCompressor with(dictionary), without(nullptr);
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string key = NumberedKey(i);
    const std::string value = ValueOf(i) + std::string(i % 2 == 0 ? 0 : 200, 'x');
    const std::string compressed(i % 4 == 0   ? with.Compress(kZstd, value)
                                 : i % 4 == 1 ? without.Compress(kZstd, value)
                                 : i % 4 == 2 ? std::string_view()
                                              : without.Compress(kLz4, value));
    RecordView record{.key = key, .value = value, .sequence = i + 1};
    if (!compressed.empty()) {
      record.value = compressed;
      record.flags = kCompressed;
    }
    EXPECT_TRUE((*builder)->Add(record).ok());
  }
  auto info = (*builder)->Finish();
  EXPECT_TRUE(info.ok()) << info.status();
  return *info;
}

std::string Plain(uint64_t i) { return ValueOf(i) + std::string(i % 2 == 0 ? 0 : 200, 'x'); }

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SegmentDictionaryTest, TheBytesOfThePartNeverChange) {
  const auto dictionary = TrainedDictionary();
  ASSERT_NE(dictionary, nullptr);
  std::string bytes = "before";
  AppendDictionary(*dictionary, 7, &bytes);
  bytes.erase(0, 6);
  EXPECT_EQ(DecodeFixed32(&bytes[4]), dictionary->content().size());
  EXPECT_EQ(bytes.substr(8, 8), "VARVEDIC");
  EXPECT_EQ(bytes.substr(16), dictionary->content());
  EXPECT_EQ(DecodeFixed32(&bytes[16]), 0xec30a437u) << "zstd's magic of dictionaries";
  ASSERT_NE(DecodeDictionary(bytes + "more", 7), nullptr);
  EXPECT_EQ(DecodeDictionary(bytes + "more", 7)->content(), dictionary->content());
  EXPECT_EQ(DecodeDictionary(bytes, 8), nullptr) << "of another segment";
  for (size_t size = 0; size < bytes.size(); size += 97)
    EXPECT_EQ(DecodeDictionary(bytes.substr(0, size), 7), nullptr) << size;
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 61) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(DecodeDictionary(damaged, 7), nullptr) << bit;
  }
}

TEST(SegmentDictionaryTest, TheFormatVersionIsTheLowestThatFits) {
  SegmentFixture fixture;
  const auto version_of = [&](uint64_t number) {
    const std::string bytes = BytesOf(fixture.Path(number));
    return DecodeFixed32(&bytes[bytes.size() - 20]);
  };
  fixture.Build(1, testing::NumberedRecords(10, 100));
  EXPECT_EQ(version_of(1), 1u);
  // A dictionary that no value needs is not written.
  auto builder = SegmentBuilder::Create(
      PosixFileSystem(),
      {.directory = fixture.directory.path(), .number = 2, .dictionary = TrainedDictionary()});
  ASSERT_TRUE((*builder)->Add({.key = NumberedKey(1), .value = "plain", .sequence = 1}).ok());
  ASSERT_TRUE((*builder)->Finish().ok());
  EXPECT_EQ(version_of(2), 1u);
  EXPECT_EQ(BytesOf(fixture.Path(2)).find(kDictionaryMagic), std::string::npos);
  Build(fixture, 3, 10, TrainedDictionary());
  EXPECT_EQ(version_of(3), 3u);
  EXPECT_NE(BytesOf(fixture.Path(3)).find(kDictionaryMagic), std::string::npos);
}

TEST(SegmentDictionaryTest, TheBuilderTakesNoValueThatNobodyCouldRead) {
  SegmentFixture fixture;
  auto builder = SegmentBuilder::Create(PosixFileSystem(),
                                        {.directory = fixture.directory.path(), .number = 1});
  ValueCompressor with(TrainedDictionary());
  const std::string compressed(with.Compress(kZstd, ValueOf(1)));
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->Add(
      {.key = NumberedKey(1), .value = compressed, .sequence = 1, .flags = kCompressed})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*builder)->Add({.key = NumberedKey(2), .value = "", .sequence = 2, .flags = kCompressed})));
}

TEST(SegmentDictionaryTest, ReadersGetPlainValues) {
  constexpr uint64_t kKeys = 500;
  SegmentFixture fixture;
  const SegmentInfo info = Build(fixture, 4, kKeys, TrainedDictionary());
  const absl::Status verified = VerifySegment(PosixFileSystem(), fixture.Path(4), info);
  EXPECT_TRUE(verified.ok()) << verified;
  for (const bool leaves_index : {true, false}) {
    if (!leaves_index) fixture.caches = std::make_unique<SegmentCaches>(1 << 20, 0);
    const std::shared_ptr<Segment> segment = fixture.Open(info);
    for (const bool fill_cache : {true, false}) {
      FoundRecord found;
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string key = NumberedKey(i);
        found.without_value = false;
        const auto got = segment->Get(key, HashKey(key), kMaxSequence, fill_cache, &found);
        ASSERT_TRUE(got.ok() && *got) << got.status();
        ASSERT_EQ(found.record.value, Plain(i));
        ASSERT_EQ(found.record.key, key);
        ASSERT_EQ(found.record.flags, kNoFlags);
        found.without_value = true;
        ASSERT_TRUE(*segment->Get(key, HashKey(key), kMaxSequence, fill_cache, &found));
        ASSERT_EQ(ValueSizeOf(found.record), Plain(i).size());
      }
      const auto iterator = segment->NewIterator(fill_cache);
      std::string buffer;
      uint64_t i = 0;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
        const auto value = PlainValueOf(iterator->record(), &buffer);
        ASSERT_TRUE(value.ok()) << value.status();
        ASSERT_EQ(*value, Plain(i));
      }
      EXPECT_EQ(i, kKeys);
    }
  }
}

TEST(SegmentDictionaryTest, ItsMemoryCountsAsThatOfTables) {
  SegmentFixture fixture;
  const auto dictionary = TrainedDictionary();
  const SegmentInfo info = Build(fixture, 5, 500, dictionary);
  fixture.caches = std::make_unique<SegmentCaches>(1 << 20, 0);
  {
    const std::shared_ptr<Segment> segment = fixture.Open(info);
    EXPECT_EQ(fixture.caches->tables.usage(), 0u);
    ASSERT_TRUE(segment->decoder().Dictionary().ok());
    EXPECT_GE(fixture.caches->tables.usage(), dictionary->content().size());
    EXPECT_LT(fixture.caches->tables.usage(), 3 * dictionary->charge());
    EXPECT_FALSE(fixture.caches->tables.Fits(1 << 20)) << "beside the dictionary";
  }
  EXPECT_EQ(fixture.caches->tables.usage(), 0u);
  // Where it alone is more than the budget, values are readable all the same.
  fixture.caches = std::make_unique<SegmentCaches>(100, 0);
  const std::shared_ptr<Segment> segment = fixture.Open(info);
  FoundRecord found;
  const std::string key = NumberedKey(0);
  ASSERT_TRUE(*segment->Get(key, HashKey(key), kMaxSequence, true, &found));
  EXPECT_EQ(found.record.value, Plain(0));
}

TEST(SegmentDictionaryTest, ASegmentWhoseDictionaryCannotBeReadIsDamaged) {
  SegmentFixture fixture;
  const SegmentInfo info = Build(fixture, 6, 10, TrainedDictionary());
  testing::FaultFileSystem files;
  const auto open = [&] {
    fixture.caches = std::make_unique<SegmentCaches>(1 << 20, 0);
    auto segment = Segment::Open(&files, fixture.directory.path(), info, fixture.caches.get());
    EXPECT_TRUE(segment.ok()) << segment.status();
    EXPECT_TRUE((*segment)->Footer().ok());
    return *std::move(segment);
  };
  for (const bool shares : {false, true}) {
    const auto read = [&](Segment& segment, const absl::Status& error) {
      files.Fail(testing::FileOperation::kRead, 1, error);
      const absl::Status status = shares ? segment.decoder().ShareDictionary().status()
                                         : segment.decoder().Dictionary().status();
      files.ClearFaults();
      return status;
    };
    {
      const std::shared_ptr<Segment> segment = open();
      EXPECT_TRUE(absl::IsResourceExhausted(read(*segment, absl::ResourceExhaustedError("none"))));
      EXPECT_FALSE(segment->is_damaged()) << "a lack of memory says nothing about the disk";
      EXPECT_TRUE(absl::IsInternal(read(*segment, absl::InternalError("the device says no"))));
      EXPECT_TRUE(segment->is_damaged());
    }
    {
      const std::shared_ptr<Segment> segment = open();
      EXPECT_TRUE(absl::IsDataLoss(read(*segment, absl::DataLossError("wrong checksum"))));
      EXPECT_TRUE(segment->is_damaged());
    }
  }
}

}  // namespace
}  // namespace varve
