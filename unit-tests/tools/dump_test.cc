// What dump-log, dump-segment and dump-manifest show of files that are whole and of files that are
// damaged.
#include "tools/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class DumpTest : public ::testing::Test {
 protected:
  std::string directory() const { return dir_.File("data"); }

  // Three writes and a deleted range; `flush` puts them into segments.
  void Fill(bool flush) {
    auto store = StorageEngine::Open(directory(), {});
    ASSERT_TRUE(store.ok()) << store.status();
    for (const char* key : {"a", "b", "c"}) {
      WriteBatch batch;
      batch.Put(key, std::string("value of ") + key);
      ASSERT_TRUE((*store)->Write({}, &batch).ok());
    }
    const auto snapshot = (*store)->GetSnapshot();  // so that a flush drops nothing
    WriteBatch batch;
    batch.Delete("a");
    batch.Put(std::string("\0\xff", 2), "odd");
    batch.DeleteRange("x", "z");
    ASSERT_TRUE((*store)->Write({}, &batch).ok());
    if (flush) ASSERT_TRUE((*store)->Flush().ok());
    ASSERT_TRUE((*store)->Close().ok());
  }

  std::string FileThatEndsWith(const std::string& suffix) const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      const std::string path = entry.path().string();
      // The first of several: the log's later files are spares.
      if (path.ends_with(suffix) && (found.empty() || path < found)) found = path;
    }
    return found;
  }
  static void Damage(const std::string& path, const std::string& text) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t at = bytes.find(text);
    ASSERT_NE(at, std::string::npos);
    file.clear();
    file.seekp(static_cast<std::streamoff>(at));
    file.put('#');
  }
  std::string Log(const std::string& path) {
    std::string text;
    status_ = DumpLog(PosixFileSystem(), path,
                      [&](std::string_view line) { text.append(line).append("\n"); });
    return text;
  }
  std::string Segment(const std::string& path) {
    std::string text;
    status_ = DumpSegment(PosixFileSystem(), path,
                          [&](std::string_view line) { text.append(line).append("\n"); });
    return text;
  }

  testing::TempDir dir_;
  absl::Status status_;
};

TEST_F(DumpTest, ALogIsShownOperationByOperation) {
  Fill(false);
  const std::string text = Log(directory());
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(text, HasSubstr("1 put generation 1 \"a\" = \"value of a\" (10 bytes)"));
  EXPECT_THAT(text, HasSubstr("4 delete generation 1 \"a\""));
  EXPECT_THAT(text, HasSubstr("5 put generation 1 \"\\x00\\xff\" = \"odd\" (3 bytes)"));
  EXPECT_THAT(text, HasSubstr("6 delete range from generation 1 \"x\" up to generation 1 \"z\""));
  EXPECT_THAT(text, HasSubstr("empty"));
  EXPECT_THAT(text, Not(HasSubstr("DAMAGED")));
}

TEST_F(DumpTest, ADamagedLogIsReadOnBehindTheDamage) {
  Fill(false);
  const std::string path = FileThatEndsWith(".log");
  Damage(path, "value of b");
  const std::string text = Log(path);
  EXPECT_TRUE(absl::IsDataLoss(status_)) << status_;
  EXPECT_THAT(text, HasSubstr("DAMAGED"));
  EXPECT_THAT(text, HasSubstr("value of a"));
  EXPECT_THAT(text, Not(HasSubstr("of b")));
  EXPECT_THAT(text, HasSubstr("value of c"));
  Damage(path, "VARVELOG");
  EXPECT_THAT(Log(path), HasSubstr("value of c"));
}

// Two damaged batches in one block, a block whose header is damaged, and a file that ends too
// early: each is named.
TEST_F(DumpTest, EachDamagedPlaceOfALogIsShownWithItsChecksums) {
  constexpr uint64_t kStore = 5;
  const auto batch = [](SequenceNumber sequence, std::string_view key) {
    const std::string tree_key = std::string("\0\0\0\1", 4).append(key);
    std::string record(kBatchHeaderSize, '\0');
    record += {static_cast<char>(RecordKind::kValue), static_cast<char>(tree_key.size()), 5};
    record += tree_key + "value";
    SealBatch(sequence, 1, HashOperations(std::string_view(record).substr(kBatchHeaderSize)),
              &record);
    return record;
  };
  std::string bytes = EncodeLogHeaderPage(1, kStore);
  const auto add_block = [&](SequenceNumber first, SequenceNumber last,
                             const std::string& payload) {
    LogBlockHeader header;
    header.payload_size = static_cast<uint32_t>(payload.size());
    header.epoch = 1;
    header.first = first;
    header.last = last;
    bytes.resize(LogBlockAlign(bytes.size()));
    char encoded[kLogBlockHeaderSize];
    EncodeLogBlockHeader(encoded, header, kStore, bytes.size());
    bytes.append(encoded, sizeof(encoded)).append(payload);
  };
  std::string payload;
  for (SequenceNumber i = 1; i <= 5; ++i) payload += batch(i, "first" + std::to_string(i));
  add_block(1, 5, payload);
  const size_t second = LogBlockAlign(bytes.size());
  add_block(6, 6, batch(6, "second"));
  add_block(7, 7, batch(7, "third"));
  const size_t damaged_value = bytes.find("first2") + 8;
  bytes[damaged_value] ^= 1;
  // The batch says that it is longer than its block.
  const size_t damaged_size = bytes.find("first4") - 19;
  bytes[damaged_size] ^= 0x40;
  bytes[second + 20] ^= 1;
  std::ofstream(dir_.File("000001.log"), std::ios::binary) << bytes;
  std::string text = Log(dir_.File("000001.log"));
  EXPECT_THAT(status_.message(), HasSubstr("3 damaged places")) << text;
  for (const char* key : {"first1", "first3", "first5", "second", "third"})
    EXPECT_THAT(text, HasSubstr(key));
  for (const char* key : {"first2", "first4"}) EXPECT_THAT(text, Not(HasSubstr(key)));
  EXPECT_THAT(
      text,
      ContainsRegex("DAMAGED: batch: checksum [0-9a-f]{8}, but its [0-9]+ bytes give [0-9a-f]{8}"));
  EXPECT_THAT(text,
              ContainsRegex(std::to_string(second) +
                            "  DAMAGED: no block that can be read up to [0-9]+: its "
                            "header has checksum [0-9a-f]{8}, but its 40 bytes give [0-9a-f]{8}"));
  std::ofstream(dir_.File("000001.log"), std::ios::binary) << bytes.substr(0, bytes.size() - 3);
  text = Log(dir_.File("000001.log"));
  EXPECT_THAT(status_.message(), HasSubstr("5 damaged places")) << text;
  EXPECT_THAT(text, HasSubstr("the file ends here, 3 bytes before the block does"));
}

TEST_F(DumpTest, EachDamagedPlaceOfASegmentIsShownWithItsChecksums) {
  Fill(true);
  const std::string path = FileThatEndsWith(".seg");
  const std::string whole = Segment(path);
  Damage(path, "value of a");
  Damage(path, "value of c");
  const std::string table = "offset table: ";
  const auto offset = std::stoul(whole.substr(whole.rfind('\n', whole.find(table)) + 1));
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset + 100));
    file.put('#');
  }
  const std::string text = Segment(path);
  EXPECT_THAT(status_.message(), HasSubstr("3 damaged places")) << text;
  EXPECT_THAT(text, HasSubstr("value of b"));
  EXPECT_THAT(text, HasSubstr("\"odd\""));
  EXPECT_THAT(text,
              ContainsRegex(
                  "DAMAGED: record: checksum [0-9a-f]{8}, but its [0-9]+ bytes give [0-9a-f]{8}"));
  EXPECT_THAT(text, HasSubstr("DAMAGED: page 0 of the offset table"));
}

TEST_F(DumpTest, ASegmentIsShownRecordByRecord) {
  Fill(true);
  const std::string text = Segment(FileThatEndsWith(".seg"));
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(text, HasSubstr("2 put generation 1 \"b\" = \"value of b\" (10 bytes)"));
  EXPECT_THAT(text, HasSubstr("delete range from generation 1 \"x\""));
  EXPECT_THAT(text, Not(HasSubstr("DAMAGED")));
}

TEST_F(DumpTest, ADamagedSegmentIsReadOnBehindTheDamage) {
  Fill(true);
  const std::string path = FileThatEndsWith(".seg");
  Damage(path, "value of b");
  std::string text = Segment(path);
  EXPECT_TRUE(absl::IsDataLoss(status_)) << status_;
  EXPECT_THAT(text, HasSubstr("DAMAGED"));
  EXPECT_THAT(text, HasSubstr("value of c"));
  Damage(path, "VARVESEG");  // then nothing says where the data ends
  text = Segment(path);
  EXPECT_TRUE(absl::IsDataLoss(status_)) << status_;
  EXPECT_THAT(text, HasSubstr("value of c"));
}

TEST_F(DumpTest, AManifestIsShownWithoutKeys) {
  Fill(/*flush=*/true);
  std::string text;
  const auto print = [&](std::string_view line) { text.append(line).append("\n"); };
  ASSERT_EQ(DumpManifest(PosixFileSystem(), directory(), print), absl::OkStatus());
  EXPECT_THAT(text, ContainsRegex("^store [0-9a-f]+, next file [0-9]+, flushed up to sequence 6, "
                                  "clock [0-9]+ ms, clean end\n"));
  EXPECT_THAT(text, HasSubstr("namespace 0: generation 1\n"));
  EXPECT_THAT(text, HasSubstr("level 0 run 0: 1 segments\n"));
  EXPECT_THAT(text, ContainsRegex("segment [0-9]+: [0-9]+ bytes, 5 records \\(1 deletes, 1 deletes "
                                  "of ranges\\), sequences 1 to 6, 0 bytes of values in 0 files"));
  EXPECT_THAT(DumpManifest(PosixFileSystem(), dir_.File("missing"), print).ToString(),
              HasSubstr("MANIFEST"));
}

TEST_F(DumpTest, WhatIsNoLogOrSegmentIsRefused) {
  EXPECT_TRUE(absl::IsNotFound((Log(dir_.path()), status_))) << status_;
  EXPECT_FALSE((Log(dir_.File("missing.log")), status_).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((Segment(dir_.File("name.seg")), status_))) << status_;
}

}  // namespace
}  // namespace varve
