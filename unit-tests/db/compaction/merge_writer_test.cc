#include "db/compaction/merge_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "db/segment/segment.h"
#include "db/segment/segment_caches.h"
#include "type/tree_key.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/vector_iterator.h"
#include "unit-tests/testing/version_history.h"

namespace varve {
namespace {

using testing::CopyOf;
using testing::TestRecord;
using testing::TreeOrder;
using testing::VectorIterator;
using testing::VersionHistory;

std::string Key(const std::string& user_key, NamespaceGeneration generation = 1) {
  return FirstTreeKey(generation) + user_key;
}

TestRecord Value(const std::string& user_key, SequenceNumber sequence) {
  return {Key(user_key), sequence, "v" + std::to_string(sequence), RecordKind::kValue};
}
TestRecord Deleted(const std::string& user_key, SequenceNumber sequence) {
  return {Key(user_key), sequence, "", RecordKind::kTombstone};
}

class MergeWriterTest : public ::testing::Test {
 protected:
  MergeWriterTest() {
    options_.file_system = PosixFileSystem();
    options_.directory = directory_.path();
    options_.next_file_number = [this] { return next_number_++; };
  }

  absl::StatusOr<MergeResult> Merge(std::vector<TestRecord> records,
                                    std::vector<RangeTombstone> tombstones = {}) {
    VectorIterator input(std::move(records));
    return MergeToSegments(&input, std::move(tombstones), options_);
  }

  // Merges and reads back all that was written, with versions as "key@sequence=value", tombstones
  // as "key@sequence-" and range tombstones behind each segment as "[begin,end)@sequence"; segments
  // are separated by "|".
  std::string Merged(std::vector<TestRecord> records, std::vector<RangeTombstone> tombstones = {}) {
    const absl::StatusOr<MergeResult> result = Merge(std::move(records), std::move(tombstones));
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return result.status().ToString();
    std::string text;
    for (const SegmentInfo& info : result->segments) {
      if (&info != &result->segments.front()) text += "| ";
      for (const TestRecord& record : RecordsOf(info)) {
        text += record.key.substr(kGenerationSize) + "@" + std::to_string(record.sequence);
        text += record.kind == RecordKind::kTombstone ? "- " : "=" + record.value + " ";
      }
      for (const RangeTombstone& tombstone : TombstonesOf(info)) {
        text += "[" + tombstone.begin.substr(kGenerationSize) + "," +
                tombstone.end.substr(kGenerationSize) + ")@" + std::to_string(tombstone.sequence) +
                " ";
      }
    }
    return text;
  }

  std::shared_ptr<Segment> Open(const SegmentInfo& info) {
    return Segment::Open(PosixFileSystem(), directory_.path(), info, &caches_).value();
  }
  std::vector<TestRecord> RecordsOf(const SegmentInfo& info) {
    const std::shared_ptr<Segment> segment = Open(info);
    const std::unique_ptr<InternalIterator> iterator = segment->NewIterator(false);
    std::vector<TestRecord> records;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      records.push_back(CopyOf(iterator->record()));
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return records;
  }
  std::vector<RangeTombstone> TombstonesOf(const SegmentInfo& info) {
    return Open(info)->range_tombstones()->tombstones();
  }

  size_t Files() { return PosixFileSystem()->List(directory_.path())->size(); }

  const testing::TempDir directory_;
  SegmentCaches caches_{1 << 20, 0};
  MergeOptions options_;
  uint64_t next_number_ = 1;
};

TEST_F(MergeWriterTest, NothingInMakesNoFile) {
  EXPECT_EQ(Merged({}), "");
  EXPECT_EQ(Files(), 0u);
}

// Notes whether a merge makes or syncs a file while it only works in what time others leave.
class HurriedFiles final : public testing::FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    EXPECT_FALSE(yields) << path;
    ++calls;
    return FaultFileSystem::OpenForWrite(path, create);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    EXPECT_FALSE(yields) << path;
    ++calls;
    return FaultFileSystem::SyncDirectory(path);
  }

  bool yields = false;
  int calls = 0;
};

TEST_F(MergeWriterTest, OutputsBeginAndEndInAHurry) {
  HurriedFiles files;
  std::vector<TestRecord> records;
  for (int i = 1000; i < 1500; ++i) records.push_back(Value(std::to_string(i), 1));
  options_.file_system = &files;
  options_.segment_size = 3000;
  options_.rest = [&] { files.yields = true; };
  options_.hurry = [&] { files.yields = false; };
  const absl::StatusOr<MergeResult> result = Merge(records);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(result->segments.size(), 3u);
  EXPECT_GE(files.calls, 6);
}

TEST_F(MergeWriterTest, OnlyTheNewestVersionSurvives) {
  EXPECT_EQ(Merged({Value("a", 1), Value("a", 5), Value("b", 2), Deleted("b", 3)}), "a@5=v5 b@3- ");
}

TEST_F(MergeWriterTest, EachSnapshotKeepsItsVersion) {
  options_.snapshots = {3, 6};
  EXPECT_EQ(Merged({Value("a", 1), Value("a", 2), Value("a", 3), Value("a", 4), Value("a", 7),
                    Value("a", 8)}),
            "a@8=v8 a@4=v4 a@3=v3 ");
}

TEST_F(MergeWriterTest, TombstonesGoOnlyWhereNothingOlderNeedsThem) {
  const std::vector<TestRecord> records = {Value("a", 1), Deleted("a", 5), Deleted("b", 6)};
  EXPECT_EQ(Merged(records), "a@5- b@6- ");
  options_.drops_tombstones = true;
  EXPECT_EQ(Merged(records), "");
  options_.snapshots = {3};
  EXPECT_EQ(Merged(records), "a@5- a@1=v1 b@6- ")
      << "the tombstone hides from the present what the snapshot sees";
  options_.snapshots = {7};
  EXPECT_EQ(Merged(records), "");
}

TEST_F(MergeWriterTest, RangeTombstonesDeleteInTheirStripe) {
  const std::vector<TestRecord> records = {Value("a", 1), Value("b", 1), Value("b", 9),
                                           Value("c", 4)};
  const std::vector<RangeTombstone> tombstones = {{Key("b"), Key("d"), 5}};
  EXPECT_EQ(Merged(records, tombstones), "a@1=v1 b@9=v9 [b,d)@5 ");
  options_.drops_tombstones = true;
  EXPECT_EQ(Merged(records, tombstones), "a@1=v1 b@9=v9 ");
  options_.snapshots = {2};
  EXPECT_EQ(Merged(records, tombstones), "a@1=v1 b@9=v9 b@1=v1 [b,d)@5 ");
  options_.snapshots = {6};
  EXPECT_EQ(Merged(records, tombstones), "a@1=v1 b@9=v9 ");
}

TEST_F(MergeWriterTest, RangeTombstonesHiddenByNewerOnesGo) {
  EXPECT_EQ(Merged({}, {{Key("a"), Key("m"), 5}, {Key("c"), Key("d"), 3}, {Key("k"), Key("z"), 8}}),
            "[a,k)@5 [k,z)@8 ");
  options_.snapshots = {4};
  EXPECT_EQ(Merged({}, {{Key("a"), Key("m"), 5}, {Key("c"), Key("d"), 3}, {Key("k"), Key("z"), 8}}),
            "[a,k)@5 [c,d)@3 [k,z)@8 ");
}

TEST_F(MergeWriterTest, DeadGenerationsAreLeftOut) {
  options_.is_live = [](NamespaceGeneration generation) { return generation != 2; };
  std::vector<TestRecord> records = {Value("a", 1)};
  for (int i = 0; i < 50; ++i)
    records.push_back({Key("k" + std::to_string(i), 2), 7, "dead", RecordKind::kValue});
  records.push_back({Key("z", 3), 9, "v9", RecordKind::kValue});
  const absl::StatusOr<MergeResult> result = Merge(records, {{Key("a", 2), EndTreeKey(2), 10}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->records_written, 2u);
  EXPECT_LT(result->records_read, 5u) << "they are not even read";
  ASSERT_EQ(result->segments.size(), 1u);
  EXPECT_EQ(result->segments[0].range_tombstones, 0u);
}

class DropsOddSequences final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord& record) const override { return record.version % 2 == 1; }
};

TEST_F(MergeWriterTest, WhatTheFilterDropsNeverLetsOlderVersionsBack) {
  const DropsOddSequences filter;
  options_.filter = &filter;
  const std::vector<TestRecord> records = {Value("a", 2), Value("a", 5), Value("b", 6),
                                           Value("c", 7)};
  EXPECT_EQ(Merged(records), "a@5- b@6=v6 c@7- ") << "older runs may hold something";
  options_.drops_tombstones = true;
  EXPECT_EQ(Merged(records), "b@6=v6 ");
  options_.snapshots = {5};
  EXPECT_EQ(Merged(records), "a@5=v5 b@6=v6 c@7- ") << "what a snapshot sees is not the filter's";
}

TEST_F(MergeWriterTest, OutputsAreCutBetweenKeysAndTombstonesWithThem) {
  options_.segment_size = 1;
  options_.snapshots = {1, 2, 3};
  EXPECT_EQ(Merged({Value("b", 1), Value("b", 2), Value("d", 3), Value("f", 4)},
                   {{Key("a"), Key("e"), 1}, {Key("g"), Key("h"), 2}}),
            "b@2=v2 b@1=v1 [a,d)@1 | d@3=v3 [d,e)@1 | f@4=v4 [g,h)@2 ");
}

// The segments [c, d] and [k, l] stay where they are.
TEST_F(MergeWriterTest, NoOutputReachesAcrossABorder) {
  options_.boundaries = {Key("c"), Key("k")};
  EXPECT_EQ(Merged({Value("a", 1), Value("b", 2), Value("m", 3)}), "a@1=v1 b@2=v2 | m@3=v3 ");
  EXPECT_EQ(Merged({Value("a", 1), Value("m", 3)},
                   {{Key("b"), Key("c"), 5}, {Key("f"), Key("g"), 5}, {Key("n"), Key("o"), 5}}),
            "a@1=v1 [b,c)@5 | [f,g)@5 | m@3=v3 [n,o)@5 ");
  EXPECT_EQ(Merged({Value("e", 1)}, {{Key("x"), Key("y"), 5}}), "e@1=v1 | [x,y)@5 ");
}

TEST_F(MergeWriterTest, AfterAnErrorNothingIsLeft) {
  options_.segment_size = 1;
  VectorIterator input({Value("a", 1), Value("b", 2), Value("c", 3), Value("d", 4)},
                       /*fails_at=*/3);
  EXPECT_EQ(MergeToSegments(&input, {}, options_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(next_number_, 4u) << "there were outputs";
  EXPECT_EQ(Files(), 0u);
}

TEST_F(MergeWriterTest, ACancelledMergeLeavesNothing) {
  std::atomic<bool> cancel = false;
  options_.cancel = &cancel;
  options_.segment_size = 1;
  options_.next_file_number = [&] {
    cancel = next_number_ == 2;
    return next_number_++;
  };
  EXPECT_EQ(Merge({Value("a", 1), Value("b", 2), Value("c", 3), Value("d", 4)}).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(next_number_, 3u);
  EXPECT_EQ(Files(), 0u);
}

// Every reader finds after the merge what it found before, and nothing is kept that no reader could
// find.
TEST_F(MergeWriterTest, ReadersFindTheSameAndNoMoreIsKeptThanTheyNeed) {
  std::mt19937 random(20);
  for (int round = 0; round < 100; ++round) {
    VersionHistory history;
    std::set<std::string> keys;
    const int operations = 1 + static_cast<int>(random() % 80);
    const auto random_key = [&] {
      return Key(std::string(1, static_cast<char>('a' + random() % 16)), 1 + random() % 3);
    };
    for (SequenceNumber sequence = 1; sequence <= static_cast<SequenceNumber>(operations);
         ++sequence) {
      const std::string key = random_key();
      if (random() % 8 == 0) {
        const std::string end = random() % 4 == 0 ? EndTreeKey(GenerationOf(key))
                                                  : key.substr(0, 4) + random_key().substr(4);
        history.tombstones.push_back({key, end, sequence});
      } else {
        const bool deletes = random() % 4 == 0;
        history.records.push_back({key, sequence, deletes ? "" : "v" + std::to_string(sequence),
                                   deletes ? RecordKind::kTombstone : RecordKind::kValue});
        keys.insert(key);
      }
    }
    options_.segment_size = random() % 2 == 0 ? 1 << 20 : 1 + random() % 200;
    options_.drops_tombstones = random() % 2 == 0;
    options_.snapshots.clear();
    for (int i = static_cast<int>(random() % 4); i > 0; --i)
      options_.snapshots.push_back(random() % (operations + 3));
    std::sort(options_.snapshots.begin(), options_.snapshots.end());
    const NamespaceGeneration dead = random() % 5;
    options_.is_live = [dead](NamespaceGeneration generation) { return generation != dead; };

    const absl::StatusOr<MergeResult> result = Merge(history.records, history.tombstones);
    ASSERT_TRUE(result.ok()) << result.status();
    VersionHistory after;
    std::string reached;
    for (const SegmentInfo& info : result->segments) {
      ASSERT_GE(info.smallest, reached);
      reached = info.largest + (info.largest_is_exclusive ? "" : std::string(1, '\0'));
      for (const TestRecord& record : RecordsOf(info)) after.records.push_back(record);
      for (const RangeTombstone& tombstone : TombstonesOf(info)) {
        ASSERT_GE(tombstone.begin, info.smallest);
        ASSERT_LE(tombstone.end, info.largest);
        after.tombstones.push_back(tombstone);
      }
    }
    std::vector<SequenceNumber> readers = options_.snapshots;
    readers.push_back(kMaxSequence);
    std::set<std::pair<std::string, SequenceNumber>> visible;  // what some reader meets first
    for (const std::string& key : keys) {
      if (GenerationOf(key) == dead) continue;
      for (const SequenceNumber at : readers) {
        ASSERT_EQ(after.Read(key, at), history.Read(key, at))
            << "round " << round << " " << key << " at " << at;
        SequenceNumber newest = kNoSequence;
        for (const TestRecord& record : history.records) {
          if (record.key == key && record.sequence <= at)
            newest = std::max(newest, record.sequence);
        }
        if (history.Covering(key, at) < newest) visible.insert({key, newest});
      }
    }
    for (const TestRecord& record : after.records) {
      ASSERT_TRUE(visible.contains({record.key, record.sequence}))
          << "round " << round << " " << record.key;
      ASSERT_NE(std::find(history.records.begin(), history.records.end(), record),
                history.records.end());
      if (options_.drops_tombstones && options_.snapshots.empty()) {
        ASSERT_EQ(record.kind, RecordKind::kValue);
      }
    }
    if (options_.drops_tombstones && options_.snapshots.empty()) {
      ASSERT_TRUE(after.tombstones.empty());
    }
    if (!options_.drops_tombstones) {  // what lies below stays deleted
      for (const std::string& key : keys) {
        if (GenerationOf(key) == dead) continue;
        for (const SequenceNumber at : readers) {
          VersionHistory below = after;
          below.records.push_back({key, 0, "from below", RecordKind::kValue});
          VersionHistory expected = history;
          expected.records.push_back({key, 0, "from below", RecordKind::kValue});
          ASSERT_EQ(below.Read(key, at), expected.Read(key, at))
              << "round " << round << " " << key << " at " << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace varve
