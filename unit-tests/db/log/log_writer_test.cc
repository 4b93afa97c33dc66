#include "db/log/log_writer.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FileOperation;
using testing::MakeRecord;
using testing::Replay;

class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() {
    options_.directory = dir_.path();
    options_.store_id = testing::kTestStore;
    options_.file_size = 64u << 10;
    files_ = std::make_unique<LogFiles>(&fs_, options_, &thread_);
    writer_ = std::make_unique<LogWriter>(options_, files_.get(), &progress_);
    EXPECT_TRUE(writer_->Start(1).ok());
  }
  ~LogWriterTest() override { files_->Stop(); }

  absl::Status Add(const std::string& operations, uint32_t* offset_in_block = nullptr) {
    const SequenceNumber sequence = progress_.appended() + 1;
    const std::string record = MakeRecord(sequence, operations);
    const absl::Status reserved = writer_->Reserve(record.size(), /*for_deletes=*/false);
    if (!reserved.ok()) return reserved;
    return writer_->Append(record, sequence, sequence, Durability::kAlways, offset_in_block);
  }
  std::vector<std::string> Replayed() const {
    const testing::Replayed replayed = Replay(dir_.path());
    EXPECT_TRUE(replayed.status.ok()) << replayed.status;
    std::vector<std::string> batches;
    for (const auto& [sequence, operations] : replayed.batches) batches.push_back(operations);
    return batches;
  }
  using Batches = std::vector<std::string>;

  const testing::TempDir dir_;
  testing::FaultFileSystem fs_;
  LogOptions options_;
  FileThread thread_;
  LogProgress progress_{0};
  std::unique_ptr<LogFiles> files_;
  std::unique_ptr<LogWriter> writer_;
};

TEST_F(LogWriterTest, WhatIsWrittenOutIsWithTheKernelAndNotDurable) {
  // The file thread writes zeros until the next file is ready; the test counts writes.
  ASSERT_TRUE(Eventually([this] { return files_->next_size() > 0; }));
  ASSERT_TRUE(Add("a").ok());
  ASSERT_TRUE(Add("b").ok());
  EXPECT_EQ(progress_.written(), 0u);
  EXPECT_GT(progress_.buffered_bytes(), 0u);
  ASSERT_TRUE(writer_->WriteOut(1).ok());
  EXPECT_EQ(progress_.written(), 2u) << "all of the buffer goes at once";
  EXPECT_EQ(progress_.buffered_bytes(), 0u);
  EXPECT_EQ(progress_.durable(), 0u);
  EXPECT_EQ(writer_->end().last_sequence, 2u);
  EXPECT_EQ(Replayed(), (Batches{"a", "b"}));
  const uint64_t writes = fs_.calls(FileOperation::kWrite);
  ASSERT_TRUE(writer_->WriteOut(2).ok());
  EXPECT_EQ(fs_.calls(FileOperation::kWrite), writes) << "it is there already";
}

TEST_F(LogWriterTest, AFileThatHoldsNoRecordIsLeftAsAnyOther) {
  ASSERT_TRUE(Add("before").ok());
  for (const char* file : {"with a record", "without one"}) {
    SCOPED_TRACE(file);
    ASSERT_TRUE(Eventually([this] { return files_->next_size() > 0; }));
    const uint64_t before = writer_->end().file_number;
    const auto next = writer_->LeaveFile();
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_TRUE(next->has_value());
    EXPECT_GT(writer_->end().file_number, before);
    EXPECT_EQ(writer_->end().last_sequence, 1u);
  }
  ASSERT_TRUE(Add("behind").ok());
  ASSERT_TRUE(writer_->WriteAndSync().ok());
  EXPECT_EQ(Replayed(), (Batches{"before", "behind"}));
}

TEST_F(LogWriterTest, AWriteWaitsForTheRecordsThatTheirOwnThreadsCopy) {
  for (const bool syncs : {false, true}) {
    const SequenceNumber sequence = progress_.appended() + 1;
    const std::string record = MakeRecord(sequence, "later");
    LogCopy later;
    ASSERT_TRUE(writer_->Reserve(record.size(), /*for_deletes=*/false).ok());
    ASSERT_TRUE(writer_
                    ->Append(record, sequence, sequence, Durability::kAlways,
                             /*offset_in_block=*/nullptr, /*mark=*/{}, &later)
                    .ok());
    ASSERT_TRUE(later.is_due());
    ASSERT_TRUE(Add("behind it").ok());
    std::thread copier([&] { later.Make(record); });
    ASSERT_TRUE((syncs ? writer_->WriteAndSync() : writer_->WriteOut(sequence)).ok());
    copier.join();
  }
  EXPECT_EQ(Replayed(), (Batches{"later", "behind it", "later", "behind it"}));
}

TEST_F(LogWriterTest, WhatFollowsASyncBeginsOnAPageOfItsOwn) {
  ASSERT_TRUE(Add("a").ok());
  ASSERT_TRUE(writer_->WriteAndSync().ok());
  EXPECT_EQ(progress_.durable(), 1u);
  ASSERT_TRUE(Add("b").ok());
  ASSERT_TRUE(writer_->WriteOut(2).ok());
  EXPECT_GT(writer_->end().offset, 2 * kLogPageSize);
  ASSERT_TRUE(Add("c").ok());
  ASSERT_TRUE(writer_->WriteOut(3).ok());
  EXPECT_LT(writer_->end().offset, 3 * kLogPageSize) << "no sync was in between";
  EXPECT_EQ(Replayed(), (Batches{"a", "b", "c"}));
}

TEST_F(LogWriterTest, RecordsGoOnInTheNextFile) {
  Batches expected;
  for (int i = 0; i < 30; ++i) {
    expected.push_back(std::string(6000, static_cast<char>('a' + i % 26)));
    ASSERT_TRUE(Add(expected.back()).ok());
    if (i % 3 == 0) ASSERT_TRUE(writer_->WriteAndSync().ok());
  }
  ASSERT_TRUE(writer_->WriteAndSync().ok());
  EXPECT_GT(writer_->end().file_number, 2u);
  EXPECT_EQ(progress_.durable(), 30u);
  EXPECT_EQ(Replayed(), expected);
}

TEST_F(LogWriterTest, LargeBlocksGetTheirPlacesWhenTheyAreWritten) {
  uint32_t offset = 0;
  ASSERT_TRUE(Add("small").ok());
  ASSERT_TRUE(Add("large", &offset).ok());
  EXPECT_GT(offset, 0u) << "behind the first record of its block";
  ASSERT_EQ(writer_->FindLargeBlocks(1, 2).size(), 1u);
  EXPECT_EQ(writer_->FindLargeBlocks(1, 2)[0].file_number, 0u);
  ASSERT_TRUE(writer_->WriteOut(2).ok());
  const LogBlockPlace place = writer_->FindLargeBlocks(2, 2).at(0);
  EXPECT_EQ(place.first, 1u);
  EXPECT_EQ(place.file_number, 1u);
  const std::string record = MakeRecord(2, "large");
  EXPECT_EQ(testing::ReadFile(dir_.File(LogFileName(1)))
                .substr(place.payload_offset + offset, record.size()),
            record);
}

TEST_F(LogWriterTest, ADirectGroupIsTheCallersToWrite) {
  ASSERT_TRUE(Add("a").ok());
  LogBuffer buffer;
  const auto group = writer_->TakeDirectGroup(&buffer);
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->previous, 0u);
  EXPECT_EQ(group->end.last_sequence, 1u);
  EXPECT_EQ(group->bytes.size() % kLogPageSize, 0u);
  EXPECT_EQ(progress_.written(), 0u);
  const absl::Status written = group->file->WriteDurably(group->offset, group->bytes);
  EXPECT_TRUE(writer_->EndDirectGroup(*group, written).ok());
  EXPECT_EQ(progress_.written(), 1u);
  EXPECT_EQ(progress_.durable(), 1u);
  EXPECT_EQ(Replayed(), (Batches{"a"}));
}

TEST_F(LogWriterTest, NoDirectGroupIsTakenBehindWhatIsNotDurable) {
  ASSERT_TRUE(Add("a").ok());
  ASSERT_TRUE(writer_->WriteOut(1).ok());
  ASSERT_TRUE(Add("b").ok());
  LogBuffer buffer;
  EXPECT_FALSE(writer_->TakeDirectGroup(&buffer).has_value());
  ASSERT_TRUE(writer_->WriteAndSync().ok());
  const auto group = writer_->TakeDirectGroup(&buffer);
  ASSERT_TRUE(group.has_value());
  EXPECT_TRUE(group->bytes.empty()) << "nothing waits";
  EXPECT_TRUE(writer_->EndDirectGroup(*group, absl::OkStatus()).ok());
}

TEST_F(LogWriterTest, AFailedWriteIsFinal) {
  ASSERT_TRUE(Add("a").ok());
  fs_.Fail(FileOperation::kWrite, 1, absl::InternalError("EIO"), /*times=*/1, LogFileName(1));
  EXPECT_TRUE(absl::IsUnavailable(writer_->WriteOut(1)));
  EXPECT_TRUE(absl::IsUnavailable(Add("b")));
  EXPECT_TRUE(absl::IsUnavailable(writer_->WriteAndSync()));
  EXPECT_EQ(progress_.written(), 0u);
  EXPECT_EQ(progress_.durable(), 0u);
}

TEST_F(LogWriterTest, AMarkIsWrittenOnlyWhenAllIsDurableAndNothingWaits) {
  ASSERT_TRUE(Add("a").ok());
  writer_->WriteMark(/*durably=*/false);
  EXPECT_EQ(progress_.written_mark(), 0u);
  ASSERT_TRUE(writer_->WriteAndSync().ok());
  EXPECT_TRUE(progress_.mark_is_behind());
  writer_->WriteMark(/*durably=*/false);
  EXPECT_FALSE(progress_.mark_is_behind());
  ASSERT_TRUE(Add("b").ok());
  ASSERT_TRUE(writer_->WriteAndSync().ok());
  EXPECT_EQ(Replayed(), (Batches{"a", "b"}));
}

}  // namespace
}  // namespace varve
