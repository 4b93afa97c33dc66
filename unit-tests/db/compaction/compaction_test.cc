#include "db/compaction/compaction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "db/compaction/compaction_planner.h"
#include "db/iterators/merging_iterator.h"
#include "db/iterators/run_iterator.h"
#include "db/segment/segment_caches.h"
#include "db/version/version_edit.h"
#include "structure/job_threads.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/vector_iterator.h"
#include "unit-tests/testing/version_history.h"
#include "util/base/hash.h"
#include "util/os/file_remover.h"

namespace varve {
namespace {

using testing::TestRecord;
using testing::VectorIterator;
using testing::VersionHistory;

// A tree of real segments that is flushed to and merged, beside everything that was ever written to
// it.
class CompactionTest : public ::testing::Test {
 protected:
  CompactionTest() {
    context_.file_system = PosixFileSystem();
    context_.directory = directory_.path();
    context_.options = &options_;
    context_.caches = &caches_;
    context_.next_file_number = [this] { return next_number_++; };
    context_.is_urgent = [] { return true; };
    context_.jobs = &jobs_;
    options_.segment_size = 2000;
  }

  std::string RandomKey() {
    std::string key = FirstTreeKey(1 + static_cast<NamespaceGeneration>(random_() % 2));
    key += static_cast<char>('a' + random_() % 20);
    if (random_() % 2 == 0) key += static_cast<char>('a' + random_() % 5);
    return key;
  }

  // `operations` random writes, as one flush.
  void WriteAndFlush(int operations) {
    std::vector<TestRecord> records;
    std::vector<RangeTombstone> tombstones;
    const bool in_order = random_() % 4 == 0;
    for (int i = 0; i < operations; ++i) {
      const SequenceNumber sequence = ++last_sequence_;
      std::string key = RandomKey();
      if (in_order) key.resize(4), key += "z" + std::to_string(1000000 + sequence);
      keys_.insert(key);
      if (random_() % 40 == 0) {
        const std::string end = random_() % 4 == 0 ? EndTreeKey(GenerationOf(key))
                                                   : key.substr(0, 4) + RandomKey().substr(4);
        tombstones.push_back({key, end, sequence});
      } else if (random_() % 4 == 0) {
        records.push_back({key, sequence, "", RecordKind::kTombstone});
      } else {
        records.push_back({key, sequence,
                           "v" + std::to_string(sequence) + std::string(random_() % 60, 'x'),
                           RecordKind::kValue});
      }
    }
    history_.records.insert(history_.records.end(), records.begin(), records.end());
    history_.tombstones.insert(history_.tombstones.end(), tombstones.begin(), tombstones.end());
    const uint64_t entries = records.size();
    VectorIterator input(std::move(records));
    const absl::StatusOr<CompactionResult> flushed =
        RunFlush(&input, tombstones, {entries, entries * 60}, version_->segment_count() == 0,
                 nullptr, context_);
    ASSERT_TRUE(flushed.ok()) << flushed.status();
    Install(ApplyFlush(*version_, flushed->segments));
  }

  std::optional<CompactionPlan> Choose(const CompactionPicker& picker) const {
    const auto pick = picker.Pick(version_->shape(), options_, /*in_burst=*/false);
    if (!pick) return std::nullopt;
    absl::StatusOr<CompactionPlan> plan = PlanOf(*version_, *pick);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? std::optional(*std::move(plan)) : std::nullopt;
  }
  // Merges in up to four parts, cut at any keys.
  void Compact(const CompactionPlan& plan) {
    std::set<std::string> cuts;
    for (size_t i = plan.in_place ? 0 : random_() % 4; i > 0; --i) cuts.insert(RandomKey());
    const absl::StatusOr<CompactionResult> result =
        RunCompaction(*version_, plan, context_, std::vector(cuts.begin(), cuts.end()));
    ASSERT_TRUE(result.ok()) << result.status();
    Install(ApplyCompaction(*version_, plan, result->segments));
  }

  // As the engine does: segments that are no longer part of the tree go.
  void Install(std::vector<Level> levels) {
    const std::shared_ptr<const Version> before = version_;
    version_ = std::make_shared<const Version>(std::move(levels), before.get());
    std::set<uint64_t> live;
    for (const auto* run : version_->runs()) {
      for (size_t i = 0; i < run->segments.size(); ++i) {
        live.insert(run->segments[i]->info().number);
        ASSERT_TRUE(i == 0 || !Overlap(run->segments[i - 1]->info(), run->segments[i]->info()));
      }
    }
    for (const auto* run : before->runs()) {
      for (const auto& segment : run->segments) {
        if (!live.contains(segment->info().number)) segment->MarkObsolete(remover_.get());
      }
    }
  }

  std::string Read(const std::string& key, SequenceNumber at) {
    const SequenceNumber covering = version_->range_tombstones().CoveringSequence(key, at);
    for (const auto* run : version_->runs()) {
      Segment* const segment = run->Find(key);
      if (segment == nullptr) continue;
      FoundRecord found;
      const absl::StatusOr<bool> known = segment->Get(key, HashKey(key), at, false, &found);
      EXPECT_TRUE(known.ok()) << known.status();
      if (!known.ok() || !*known) continue;
      if (found.record.kind == RecordKind::kTombstone || covering > found.record.sequence)
        return "(none)";
      return std::string(found.record.value);
    }
    return "(none)";
  }

  void ExpectSameAsHistory(NamespaceGeneration dead) {
    std::vector<SequenceNumber> readers = context_.snapshots;
    readers.push_back(kMaxSequence);
    for (const std::string& key : keys_) {
      if (GenerationOf(key) == dead) continue;
      for (const SequenceNumber at : readers)
        ASSERT_EQ(Read(key, at), history_.Read(key, at)) << key << " at " << at;
    }
  }

  uint64_t Records() {
    std::vector<std::unique_ptr<InternalIterator>> runs;
    for (const auto* run : version_->runs()) runs.push_back(NewRunIterator(run->segments, false));
    const std::unique_ptr<InternalIterator> all = NewMergingIterator(std::move(runs));
    uint64_t records = 0;
    std::string last;
    for (all->SeekToFirst(); all->Valid(); all->Next(), ++records) {
      EXPECT_GE(all->record().key, last);
      last = all->record().key;
    }
    EXPECT_TRUE(all->status().ok());
    return records;
  }

  // When the remover has done its work.
  size_t FilesLeft() {
    remover_ = std::make_unique<FileRemover>(PosixFileSystem(), &file_thread_);
    return PosixFileSystem()->List(directory_.path())->size();
  }

  const testing::TempDir directory_;
  SegmentCaches caches_{1 << 20, 0};
  FileThread file_thread_;
  std::unique_ptr<FileRemover> remover_ =
      std::make_unique<FileRemover>(PosixFileSystem(), &file_thread_);
  EngineOptions options_;
  CompactionContext context_;
  std::shared_ptr<const Version> version_ = std::make_shared<const Version>();
  VersionHistory history_;
  std::set<std::string> keys_;
  SequenceNumber last_sequence_ = 0;
  std::atomic<uint64_t> next_number_ = 1;
  JobThreads jobs_{2};
  std::mt19937 random_{77};
};

TEST_F(CompactionTest, EveryReaderFindsTheSameThroughFlushesMergesMovesAndRangeCompactions) {
  const std::shared_ptr<const CompactionPicker> picker = LazyLevelingPicker();
  for (int round = 0; round < 3; ++round) {
    version_ = std::make_shared<const Version>();
    history_ = {};
    keys_.clear();
    context_.snapshots.clear();
    context_.is_live = nullptr;
    NamespaceGeneration dead = 0;
    for (int step = 0; step < 40; ++step) {
      WriteAndFlush(1 + static_cast<int>(random_() % 60));
      if (random_() % 5 == 0) context_.snapshots.push_back(last_sequence_);
      if (random_() % 8 == 0 && !context_.snapshots.empty()) {
        context_.snapshots.erase(context_.snapshots.begin() +
                                 static_cast<ptrdiff_t>(random_() % context_.snapshots.size()));
      }
      if (step == 30 && round % 2 == 1) {
        dead = 1;
        context_.is_live = [](NamespaceGeneration generation) { return generation != 1; };
      }
      if (random_() % 10 == 0) {
        const std::string lower = RandomKey();
        if (const auto plan = PlanRange(*version_, lower, lower + "zz")) Compact(*plan);
      }
      if (const auto plan = PlanDeadSegments(*version_, context_.snapshots, {}, context_.is_live))
        Compact(*plan);
      for (int merges = 0; merges < 20; ++merges) {
        const auto plan = Choose(*picker);
        if (!plan) break;
        Compact(*plan);
      }
      EXPECT_FALSE(Choose(*picker)) << "merging comes to an end";
      if (step % 4 == 3) ExpectSameAsHistory(dead);
      if (HasFatalFailure()) return;
    }
    context_.snapshots.clear();
    if (const auto plan = PlanRange(*version_, FirstTreeKey(0), {})) Compact(*plan);
    ExpectSameAsHistory(dead);
    uint64_t live_keys = 0;
    for (const std::string& key : keys_)
      live_keys += GenerationOf(key) != dead && history_.Read(key, kMaxSequence) != "(none)";
    EXPECT_EQ(Records(), live_keys) << "one record a key when all is merged";
    EXPECT_TRUE(version_->range_tombstones().empty());
    EXPECT_EQ(FilesLeft(), version_->segment_count());
    Install({});
  }
}

TEST_F(CompactionTest, AMoveWritesNothingAndARemovalReadsNothing) {
  options_.segment_size = 1 << 20;
  for (int i = 0; i < 4; ++i) {
    std::vector<TestRecord> records;
    for (int j = 0; j < 1000; ++j) {
      records.push_back({FirstTreeKey(1) + std::to_string(100000 + i * 1000 + j), ++last_sequence_,
                         std::string(400, 'x')});
    }
    VectorIterator input(std::move(records));
    const auto flushed = RunFlush(&input, {}, {1000, 420000}, false, nullptr, context_);
    ASSERT_TRUE(flushed.ok()) << flushed.status();
    Install(ApplyFlush(*version_, flushed->segments));
  }
  const uint64_t files = next_number_;
  auto plan = Choose(*LazyLevelingPicker());
  ASSERT_TRUE(plan && plan->move_only);
  Compact(*plan);
  EXPECT_EQ(next_number_, files);
  ASSERT_EQ(version_->runs().size(), 1u);
  EXPECT_EQ(version_->segment_count(), 4u);
  EXPECT_EQ(Records(), 4000u);
  plan = PlanDeadSegments(*version_, {}, {}, [](NamespaceGeneration) { return false; });
  ASSERT_TRUE(plan);
  Compact(*plan);
  plan.reset();  // holds the segments, and with them their files
  EXPECT_EQ(version_->segment_count(), 0u);
  EXPECT_EQ(FilesLeft(), 0u);
}

}  // namespace
}  // namespace varve
