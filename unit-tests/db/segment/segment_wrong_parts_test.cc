// Parts of a segment that are under right checksums and yet make no sense, as a wrong builder would
// write them: the verifier names them, and readers answer with an error instead of following them
// out of the data.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "db/segment/segment_footer.h"
#include "db/segment/segment_format.h"
#include "tools/segment_verifier.h"
#include "unit-tests/testing/segment_fixture.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve {
namespace {

using testing::Get;
using testing::Lookup;
using testing::NumberedRecords;
using testing::SegmentFixture;

constexpr uint64_t kDamagedNumber = 7;

class SegmentWrongPartsTest : public ::testing::Test {
 protected:
  SegmentWrongPartsTest() {
    info_ = fixture_.Build(kDamagedNumber, records_);
    std::ifstream file(fixture_.Path(kDamagedNumber), std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const auto opened = PosixFileSystem()->OpenForRead(fixture_.Path(kDamagedNumber));
    footer_ = *ReadSegmentFooter(**opened, kDamagedNumber, info_.file_size, nullptr);
    EXPECT_TRUE(VerifySegment(PosixFileSystem(), fixture_.Path(kDamagedNumber), info_).ok());
    EXPECT_GE(footer_.fence_count, 4u);
    EXPECT_EQ(footer_.table_pages, 1u);
  }

  char* fences() { return bytes_.data() + footer_.fences_offset; }
  // Of the fences, which fit one chunk.
  void SealFences() {
    const std::string_view body(fences(), footer_.fences_size - 4);
    EncodeFixed32(fences() + body.size(),
                  Checksum(body, SegmentPartSeed(kDamagedNumber, SegmentPart::kFences, 0)));
    Write();
  }

  // Changes every slot of the table that is in use.
  template <typename Change>
  void ChangeSlots(Change change) {
    char* const page = bytes_.data() + footer_.table_offset;
    for (size_t at = kOffsetTableHeaderSize; at < kOffsetTablePageSize; at += 8) {
      if (const uint64_t slot = DecodeFixed64(page + at); (slot >> 1 & 0x7f) != 0)
        EncodeFixed64(page + at, change(slot));
    }
    EncodeFixed32(page, Checksum({page + 4, kOffsetTablePageSize - 4},
                                 OffsetTablePageSeed(kDamagedNumber, 0)));
    Write();
  }

  void SealFooter() {
    const size_t begin = footer_.range_tombstones_offset + footer_.range_tombstones_size;
    char* const tail = bytes_.data() + bytes_.size() - kSegmentTailSize;
    const std::string_view body =
        std::string_view(bytes_).substr(begin, bytes_.size() - kSegmentTailSize - begin);
    EncodeFixed32(tail + 16, Checksum(body, SegmentPartSeed(kDamagedNumber, SegmentPart::kFooter)));
    EncodeFixed32(tail + 20,
                  Checksum({tail, 20}, SegmentPartSeed(kDamagedNumber, SegmentPart::kTail)));
    Write();
  }

  std::string Verified() const {
    return VerifySegment(PosixFileSystem(), fixture_.Path(kDamagedNumber), info_).ToString();
  }

  SegmentFixture fixture_;
  std::vector<testing::OwnedRecord> records_ = NumberedRecords(200, 100);
  SegmentInfo info_;
  SegmentFooter footer_;
  std::string bytes_;

 private:
  void Write() const { std::ofstream(fixture_.Path(kDamagedNumber), std::ios::binary) << bytes_; }
};

TEST_F(SegmentWrongPartsTest, FencesOutOfOrderAreRefused) {
  EncodeFixed64(fences() + 8, DecodeFixed64(fences() + 24));
  SealFences();
  EXPECT_NE(Verified().find("fences"), std::string::npos) << Verified();
  const auto segment = fixture_.Open(info_);
  const auto iterator = segment->NewIterator(true);
  iterator->Seek(records_[100].key, kMaxSequence);
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(absl::IsDataLoss(iterator->status())) << iterator->status();
}

// A segment with two fences of one block was accepted, though blocks are cached by number: a seek
// that got the other fence's bytes left its window and ended the process.
//
// Blocks are cached by their number: with the wrong one of the two in its place, a seek left the
// block it thought it was in.
TEST_F(SegmentWrongPartsTest, TwoFencesOfOneBlockAreRefused) {
  EncodeFixed64(fences() + 16, DecodeFixed64(fences() + 8) + 1);
  SealFences();
  const auto segment = fixture_.Open(info_);
  const auto iterator = segment->NewIterator(true);
  for (size_t i = 0; i < records_.size(); i += 10) {
    iterator->Seek(records_[i].key, kMaxSequence);
    EXPECT_TRUE(absl::IsDataLoss(iterator->status())) << iterator->status();
  }
}

TEST_F(SegmentWrongPartsTest, FencesBehindTheDataAreRefused) {
  EncodeFixed64(fences() + (footer_.fence_count - 1) * size_t{8}, footer_.data_size);
  SealFences();
  const auto segment = fixture_.Open(info_);
  const auto iterator = segment->NewIterator(false);
  iterator->SeekToLast();
  EXPECT_TRUE(absl::IsDataLoss(iterator->status())) << iterator->status();
}

TEST_F(SegmentWrongPartsTest, TheVerifierFindsFencesOfOtherRecords) {
  ++fences()[footer_.fences_size - 5];  // in the last key
  SealFences();
  EXPECT_NE(Verified().find("fences: not those of the records"), std::string::npos) << Verified();
}

TEST_F(SegmentWrongPartsTest, ATableThatLeadsOutOfTheDataIsAnError) {
  constexpr uint64_t kFar = kMaxTableOffset << 8;
  ChangeSlots([](uint64_t slot) { return slot | kFar; });
  EXPECT_NE(Verified().find("the offset table doesn't lead to it"), std::string::npos)
      << Verified();
  const auto segment = fixture_.Open(info_);
  for (const bool fill_cache : {false, true, true}) {  // the last time the index is in memory
    for (const auto& record : records_) {
      const Lookup lookup = Get(*segment, record.key, kMaxSequence, fill_cache);
      ASSERT_TRUE(absl::IsDataLoss(lookup.status)) << lookup.status;
    }
  }
}

TEST_F(SegmentWrongPartsTest, TheVerifierFindsSlotsThatWouldReadTooLittle) {
  ChangeSlots([](uint64_t slot) { return (slot & ~uint64_t{0xfe}) | 1 << 1; });
  EXPECT_NE(Verified().find("the offset table doesn't lead to it"), std::string::npos)
      << Verified();
}

TEST_F(SegmentWrongPartsTest, AFooterWithSizesThatNoSegmentHasIsRefused) {
  char* const footer =
      bytes_.data() + footer_.range_tombstones_offset + footer_.range_tombstones_size;
  const std::string good(footer, 120);
  for (const auto& [field, value] :
       std::vector<std::pair<int, uint64_t>>{{1, std::numeric_limits<uint64_t>::max()},
                                             {2, 0},
                                             {2, 4097},
                                             {2, 1u << 20},
                                             {4, uint64_t{1} << 32}}) {
    EncodeFixed64(footer + field * 8, value);
    SealFooter();
    EXPECT_NE(Verified().find("its fields contradict each other"), std::string::npos)
        << field << ": " << Verified();
    good.copy(footer, good.size());
  }
}

}  // namespace
}  // namespace varve
