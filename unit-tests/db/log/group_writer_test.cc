// Direct groups: two under way at once, which count as there in the order in which they were
// issued.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::LogUser;
using testing::Replay;

// Durable writes begin, and go on when they are told to.
class HeldWrites : public FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    auto file = FaultFileSystem::OpenForWrite(path, create);
    if (!file.ok()) return file.status();
    return std::make_unique<HeldFile>(this, *std::move(file));
  }

  size_t begun() {
    absl::MutexLock lock(&mutex_);
    return begun_;
  }
  size_t ended() {
    absl::MutexLock lock(&mutex_);
    return ended_;
  }
  // The n-th one, from 0. Where `status` is not OK it fails, and writes nothing.
  void Release(size_t number, absl::Status status = absl::OkStatus()) {
    absl::MutexLock lock(&mutex_);
    released_.emplace(number, std::move(status));
  }

 private:
  class HeldFile : public ForwardingFile {
   public:
    HeldFile(HeldWrites* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}

    absl::Status WriteDurably(uint64_t offset, std::string_view data) override {
      {
        absl::MutexLock lock(&owner_->mutex_);
        const size_t number = owner_->begun_++;
        const auto is_released = [&] { return owner_->released_.contains(number); };
        owner_->mutex_.Await(absl::Condition(&is_released));
        if (absl::Status status = owner_->released_.at(number); !status.ok()) return status;
      }
      absl::Status written = ForwardingFile::WriteDurably(offset, data);
      absl::MutexLock lock(&owner_->mutex_);
      ++owner_->ended_;
      return written;
    }

   private:
    HeldWrites* const owner_;
  };

  absl::Mutex mutex_;
  size_t begun_ = 0;
  size_t ended_ = 0;
  std::map<size_t, absl::Status> released_;
};

class GroupWriterTest : public ::testing::Test {
 protected:
  GroupWriterTest() : user_(dir_.path(), /*file_size=*/1u << 20, 0, 1, &fs_) {
    user_.options().sync_backend = SyncBackend::kDirect;
    user_.Open();
  }
  ~GroupWriterTest() override {
    for (size_t i = 0; i < 10; ++i) fs_.Release(i);
    Join();
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  // Adds a record, for which a thread waits then; its result goes to `*status`.
  void CommitOnAThread(std::string_view operations, absl::Status* status) {
    ASSERT_TRUE(user_.Add(operations).ok());
    WaitOnAThread(status);
  }
  void WaitOnAThread(absl::Status* status) {
    threads_.emplace_back([this, status, sequence = user_.last()] {
      *status = user_.log().WaitUntilDurable(sequence);
    });
  }
  std::vector<std::string> Replayed() {
    const testing::Replayed replayed = Replay(dir_.path());
    EXPECT_TRUE(replayed.status.ok()) << replayed.status;
    std::vector<std::string> batches;
    for (const auto& [sequence, operations] : replayed.batches) batches.push_back(operations);
    return batches;
  }

  testing::TempDir dir_;
  HeldWrites fs_;
  LogUser user_;
  std::vector<std::thread> threads_;
  absl::Status statuses_[3];
};

TEST_F(GroupWriterTest, TwoGroupsAreUnderWayAndCountInOrder) {
  CommitOnAThread("a", &statuses_[0]);
  ASSERT_TRUE(Eventually([this] { return fs_.begun() == 1; }));
  CommitOnAThread("b", &statuses_[1]);
  ASSERT_TRUE(Eventually([this] { return fs_.begun() == 2; })) << "it doesn't wait for the first";
  ASSERT_TRUE(user_.Add("c").ok());
  EXPECT_FALSE(user_.log().TrySync()) << "no third one";
  EXPECT_EQ(fs_.begun(), 2u);
  WaitOnAThread(&statuses_[2]);
  fs_.Release(1);
  ASSERT_TRUE(Eventually([this] { return fs_.ended() == 1; }));
  EXPECT_EQ(user_.log().durable_sequence(), 0u) << "the second is there, but not the first";
  fs_.Release(0);
  ASSERT_TRUE(Eventually([this] { return user_.log().durable_sequence() == 2; }));
  ASSERT_TRUE(Eventually([this] { return fs_.begun() == 3; }))
      << "the thread that ends one begins the next";
  fs_.Release(2);
  Join();
  for (const absl::Status& status : statuses_) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(user_.log().durable_sequence(), 3u);
  EXPECT_EQ(user_.log().statistics().groups, 3u);
  EXPECT_EQ(Replayed(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(GroupWriterTest, WhatStandsBehindAFailedGroupIsNotAcknowledged) {
  CommitOnAThread("a", &statuses_[0]);
  ASSERT_TRUE(Eventually([this] { return fs_.begun() == 1; }));
  CommitOnAThread("b", &statuses_[1]);
  ASSERT_TRUE(Eventually([this] { return fs_.begun() == 2; }));
  fs_.Release(1);
  ASSERT_TRUE(Eventually([this] { return fs_.ended() == 1; }));
  fs_.Release(0, absl::InternalError("EIO"));
  Join();
  EXPECT_TRUE(absl::IsUnavailable(statuses_[0])) << statuses_[0];
  EXPECT_TRUE(absl::IsUnavailable(statuses_[1])) << statuses_[1];
  EXPECT_EQ(user_.log().durable_sequence(), 0u);
  EXPECT_TRUE(absl::IsUnavailable(user_.Add("c"))) << "nothing more is taken";
  EXPECT_EQ(Replayed(), std::vector<std::string>())
      << "recovery cuts where the first one is missing";
}

TEST_F(GroupWriterTest, WhatTheKernelHoldsIsSyncedTheOtherWayAndLaterGroupsGoDirectAgain) {
  ASSERT_TRUE(user_.Add("unsynced", Durability::kNone).ok());
  ASSERT_TRUE(user_.log().Push().ok());
  const uint64_t syncs = fs_.calls(FileOperation::kSync);
  ASSERT_TRUE(user_.Commit("synced").ok());
  EXPECT_GT(fs_.calls(FileOperation::kSync), syncs);
  EXPECT_EQ(fs_.begun(), 0u);
  CommitOnAThread("direct", &statuses_[0]);
  ASSERT_TRUE(Eventually([this] { return fs_.begun() == 1; }));
  // Who writes without a sync waits for those before, so that all is there in order.
  ASSERT_TRUE(user_.Add("behind", Durability::kNone).ok());
  std::atomic<bool> pushes{false};
  std::thread writer([&] {
    pushes = true;
    EXPECT_TRUE(user_.log().Push().ok());
  });
  ASSERT_TRUE(Eventually([&] { return pushes.load(); }));
  EXPECT_EQ(user_.log().written_sequence(), 2u);
  fs_.Release(0);
  writer.join();
  EXPECT_EQ(user_.log().written_sequence(), 4u);
  EXPECT_EQ(Replayed(), (std::vector<std::string>{"unsynced", "synced", "direct", "behind"}));
}

}  // namespace
}  // namespace varve
