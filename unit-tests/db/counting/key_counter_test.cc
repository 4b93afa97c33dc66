#include "db/counting/key_counter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "util/base/hash.h"

namespace varve {
namespace {

// An empty tree, into whose write buffers a test writes.
class KeyCounterTest : public ::testing::Test {
 protected:
  KeyCounterTest() {
    const Manifest manifest{.namespaces = {{kDefaultNamespace, 1}, {1, 2}}};
    const auto version = std::make_shared<const Version>();
    absl::MutexLock lock(&versions_.mutex());
    versions_.StartLocked(version, NamespaceTable(manifest), kNoSequence, {});
    counter_.StartLocked(*version, manifest);
  }

  void Write(RecordKind kind, NamespaceGeneration generation, std::string_view key,
             std::string_view value = {}) {
    absl::MutexLock lock(&versions_.mutex());
    const TreeKey tree_key(generation, key);
    const SequenceNumber sequence = versions_.LastSequenceLocked() + 1;
    RecordView record;
    record.kind = kind;
    record.key = tree_key.view();
    record.value = value;
    record.sequence = sequence;
    const std::shared_ptr<const SuperVersion> present = versions_.PresentLocked();
    present->active->Reserve(WriteBuffer::SizeOf(record), 0);
    versions_.AdvanceLocked(sequence);
    present->active->Add(record, HashKey(record.key), /*readers_wait=*/false);
    versions_.show_queue().ShowLocked(versions_.LastSequenceLocked());
  }
  void Put(NamespaceGeneration generation, std::string_view key, std::string_view value) {
    Write(RecordKind::kValue, generation, key, value);
  }
  void Rotate() {
    absl::MutexLock lock(&versions_.mutex());
    versions_.RotateLocked(/*log_bytes=*/0);
  }
  KeyCounts Count(NamespaceId space) {
    const absl::StatusOr<KeyCounter::Counted> counted = counter_.CountNamespace(space);
    EXPECT_TRUE(counted.ok()) << counted.status();
    return counted.ok() ? counted->counts : KeyCounts{};
  }

  SequenceNumber durable_ = kMaxSequence;
  SuperVersions versions_{64u << 10};
  KeyCounter counter_{&versions_, [this] { return durable_; }, /*most_full_buffers=*/2};
};

TEST_F(KeyCounterTest, EachKeyCountsOnceWithItsNewestValue) {
  EXPECT_EQ(Count(0), (KeyCounts{0, 0}));
  Put(1, "a", "12345");
  Put(1, "b", "1");
  Put(1, "a", "12");
  EXPECT_EQ(Count(0), (KeyCounts{2, 5}));
  Write(RecordKind::kTombstone, 1, "a");
  EXPECT_EQ(Count(0), (KeyCounts{1, 2}));
}

TEST_F(KeyCounterTest, NamespacesAreCountedApart) {
  Put(1, "a", "1");
  Put(2, "a", "1");
  Put(2, "b", "1");
  EXPECT_EQ(Count(0).keys, 1);
  EXPECT_EQ(Count(1).keys, 2);
  EXPECT_FALSE(counter_.CountNamespace(99).ok());
  EXPECT_EQ(counter_.CountGeneration(2)->keys, 2);
}

TEST_F(KeyCounterTest, WhatABufferChangesIsKnownOnceItWasCounted) {
  Put(1, "a", "1");
  Rotate();
  const std::shared_ptr<WriteBuffer> full = versions_.OldestFullBuffer()->buffer;
  EXPECT_FALSE(counter_.ChangeOfBuffer(*full));
  Put(1, "a", "22");  // replaces what the full buffer holds
  Put(1, "c", "1");
  EXPECT_EQ(Count(0), (KeyCounts{2, 5}));
  ASSERT_TRUE(counter_.ChangeOfBuffer(*full));
  EXPECT_EQ(counter_.ChangeOfBuffer(*full)->Of(1), (KeyCounts{1, 2}));
}

TEST_F(KeyCounterTest, NothingIsNotedThatACrashCouldTakeBack) {
  Put(1, "a", "1");
  Rotate();
  {
    absl::MutexLock lock(&versions_.mutex());
    const std::shared_ptr<SuperVersion> next = versions_.CopyLocked();
    next->namespaces_changed = 1;
    versions_.PublishLocked(next);
  }
  durable_ = kNoSequence;
  const std::shared_ptr<WriteBuffer> full = versions_.OldestFullBuffer()->buffer;
  EXPECT_EQ(Count(0).keys, 1);
  EXPECT_FALSE(counter_.ChangeOfBuffer(*full));
}

TEST_F(KeyCounterTest, WithTooManyFullBuffersKeysAreCountedByAScan) {
  for (const char* key : {"a", "b", "c", "d"}) {
    Put(1, key, "1");
    Rotate();
  }
  EXPECT_EQ(Count(0).keys, 4);
  EXPECT_FALSE(counter_.ChangeOfBuffer(*versions_.OldestFullBuffer()->buffer));
}

TEST_F(KeyCounterTest, AnInstallThatSeesLessForgetsWhatWasFoundOut) {
  Put(1, "a", "1");
  Rotate();
  EXPECT_EQ(Count(0).keys, 1);
  const std::shared_ptr<WriteBuffer> full = versions_.OldestFullBuffer()->buffer;
  ASSERT_TRUE(counter_.ChangeOfBuffer(*full));
  {
    absl::MutexLock lock(&versions_.mutex());
    counter_.ApplyLocked(KeyCounter::Follow{}, /*sees_less=*/true, /*flushed=*/nullptr);
  }
  EXPECT_FALSE(counter_.ChangeOfBuffer(*full));
  EXPECT_EQ(Count(0).keys, 1);
}

TEST_F(KeyCounterTest, AtRestNothingIsLeftToCountInAnEmptyTree) {
  EXPECT_TRUE(counter_.CountAtRest([] { return true; }));
  EXPECT_EQ(counter_.UncountedSegments(), 0u);
}

}  // namespace
}  // namespace varve
