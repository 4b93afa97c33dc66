#include "db/version/super_versions.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "util/base/hash.h"

namespace varve {
namespace {

class SuperVersionsTest : public ::testing::Test {
 protected:
  SuperVersionsTest() {
    const Manifest manifest{.namespaces = {{kDefaultNamespace, 1}}};
    absl::MutexLock lock(&versions_.mutex());
    versions_.StartLocked(std::make_shared<const Version>(), NamespaceTable(manifest),
                          /*flushed=*/10, {});
    versions_.show_queue().ShowLocked(versions_.LastSequenceLocked());
  }
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_.mutex()) {
    const TreeKey key(1, "key");
    RecordView record;
    record.kind = RecordKind::kValue;
    record.key = key.view();
    record.sequence = versions_.LastSequenceLocked() + 1;
    WriteBuffer* const active = versions_.PresentLocked()->active.get();
    active->Reserve(WriteBuffer::SizeOf(record), 0);
    versions_.AdvanceLocked(record.sequence);
    active->Add(record, HashKey(record.key), /*readers_wait=*/false);
    versions_.show_queue().ShowLocked(versions_.LastSequenceLocked());
  }

  SuperVersions versions_{64u << 10};
};

TEST_F(SuperVersionsTest, ARotatedBufferWaitsInTheFlushQueueUntilItIsPopped) {
  const SuperVersions::Pin before = versions_.Acquire();
  {
    absl::MutexLock lock(&versions_.mutex());
    EXPECT_TRUE(versions_.ActiveBufferIsEmptyLocked());
    Write();
    EXPECT_FALSE(versions_.ActiveBufferIsEmptyLocked());
    versions_.RotateLocked(/*log_bytes=*/100);
    Write();
    versions_.RotateLocked(/*log_bytes=*/250);
  }
  EXPECT_FALSE(versions_.IsCurrent(before));
  EXPECT_EQ(versions_.full_buffers(), 2);
  EXPECT_EQ(versions_.visible(), 12u);
  const std::optional<FullBuffer> oldest = versions_.OldestFullBuffer();
  ASSERT_TRUE(oldest);
  EXPECT_EQ(oldest->buffer->last_sequence(), 11u);
  EXPECT_EQ(oldest->log_bytes, 100u);
  absl::MutexLock lock(&versions_.mutex());
  const std::shared_ptr<SuperVersion> next = versions_.CopyLocked();
  std::erase(next->full, oldest->buffer);
  versions_.PopFlushedLocked(11, {}, kNoSequence, {});
  versions_.PublishLocked(next);
  EXPECT_EQ(versions_.FlushedLocked(), 11u);
  EXPECT_EQ(versions_.FlushQueueLocked().front().log_bytes, 150u);
  EXPECT_EQ(versions_.full_buffers(), 1);
}

TEST_F(SuperVersionsTest, TheNamespacesOfAnEarlierSequenceAreKnownWhileRetiredGenerationsAre) {
  absl::MutexLock lock(&versions_.mutex());
  Write();
  const std::shared_ptr<SuperVersion> next = versions_.CopyLocked();
  next->namespaces.Set(kDefaultNamespace, 5);
  next->namespaces_changed = 11;
  versions_.ReserveLocked(0, 1);
  versions_.AddLocked({}, {{kDefaultNamespace, 1, 11}});
  versions_.PublishLocked(next);
  EXPECT_EQ(versions_.NamespacesAtLocked(10).Generation(kDefaultNamespace), 1u);
  EXPECT_EQ(versions_.NamespacesAtLocked(11).Generation(kDefaultNamespace), 5u);
  EXPECT_EQ(versions_.GenerationsRetiredAfterLocked(10, {}), std::vector<NamespaceGeneration>{1});
  EXPECT_TRUE(versions_.GenerationsRetiredAfterLocked(11, {}).empty());
}

TEST_F(SuperVersionsTest, TheFlusherIsWokenForWorkAndAtTheEnd) {
  {
    absl::MutexLock lock(&versions_.mutex());
    Write();
    versions_.RotateLocked(0);
  }
  EXPECT_TRUE(versions_.WaitForFlushWork(kEndOfTime));
  std::thread stopper([this] { versions_.Stop(); });
  while (versions_.WaitForFlushWork(SteadyNow())) {
  }
  stopper.join();
  EXPECT_TRUE(versions_.stopped());
}

TEST_F(SuperVersionsTest, ASnapshotIsHeldUntilItGoes) {
  NamespaceTable namespaces = versions_.Acquire()->namespaces;
  std::shared_ptr<const Snapshot> snapshot = versions_.TakeSnapshot(namespaces, 1);
  EXPECT_EQ(snapshot->sequence(), 10u);
  EXPECT_EQ(versions_.HeldSnapshots().sequences, std::vector<SequenceNumber>{10});
  EXPECT_EQ(versions_.TakeSnapshotAt(7, namespaces, 1)->sequence(), 7u);
  snapshot.reset();
  EXPECT_TRUE(versions_.HeldSnapshots().sequences.empty());
  EXPECT_EQ(versions_.HeldSnapshots().visible, 10u);
}

}  // namespace
}  // namespace varve
