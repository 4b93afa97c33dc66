// Group commit alone, with a group writer that does what the test says.
#include "db/log/group_commit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Eventually;

// A group takes what is appended when it begins, and ends when the test lets it.
class HeldGroups : public GroupWriter {
 public:
  HeldGroups(LogProgress* progress, int most) : progress_(progress), most_(most) {}

  absl::Status WriteGroup() override {
    absl::MutexLock lock(&mutex_);
    const SequenceNumber last = progress_->appended();
    const int number = begun_++;
    mutex_.Await(absl::Condition(
        +[](std::pair<HeldGroups*, int>* group) { return group->first->released_ > group->second; },
        std::make_unique<std::pair<HeldGroups*, int>>(this, number).get()));
    if (fails_) return progress_->Fail(absl::InternalError("EIO"));
    if (last > progress_->written()) {
      progress_->Written(last, last - progress_->written());
      progress_->Durable(last);
    }
    return absl::OkStatus();
  }
  void WriteMark() override {
    ++marks_;
    progress_->MarkWritten(progress_->durable());
  }
  int most_at_once() const override { return most_; }

  int begun() {
    absl::MutexLock lock(&mutex_);
    return begun_;
  }
  void Release(int groups) {
    absl::MutexLock lock(&mutex_);
    released_ += groups;
  }
  void FailFromNowOn() {
    absl::MutexLock lock(&mutex_);
    fails_ = true;
  }
  int marks() const { return marks_; }

 private:
  LogProgress* const progress_;
  const int most_;
  absl::Mutex mutex_;
  int begun_ = 0;
  int released_ = 0;
  bool fails_ = false;
  std::atomic<int> marks_{0};
};

class GroupCommitTest : public ::testing::Test {
 protected:
  explicit GroupCommitTest(int most = 1) : groups_(&progress_, most) {
    commit_ =
        std::make_unique<GroupCommit>(LogOptions{}, &groups_, &progress_, [this] { ++notified_; });
    commit_->Start();
  }
  ~GroupCommitTest() override {
    groups_.Release(1000);
    for (std::thread& waiter : waiters_) waiter.join();
    commit_->Stop();
  }

  SequenceNumber Append(Durability durability = Durability::kAlways) {
    progress_.Appended(progress_.appended() + 1, durability, 1);
    return progress_.appended();
  }
  void WaitOnAThread(SequenceNumber sequence) {
    waiters_.emplace_back([this, sequence] {
      commit_->WaitUntilDurable(sequence).ok() ? ++acknowledged_ : ++refused_;
    });
  }

  LogProgress progress_{0};
  HeldGroups groups_;
  std::unique_ptr<GroupCommit> commit_;
  std::vector<std::thread> waiters_;
  std::atomic<int> notified_{0}, acknowledged_{0}, refused_{0};
};

TEST_F(GroupCommitTest, WhatArrivesDuringAGroupSharesTheNextOne) {
  WaitOnAThread(Append());
  ASSERT_TRUE(Eventually([this] { return groups_.begun() == 1; }));
  for (int i = 0; i < 5; ++i) WaitOnAThread(Append());
  groups_.Release(1);
  EXPECT_TRUE(Eventually([this] { return acknowledged_ == 1; }));
  ASSERT_TRUE(Eventually([this] { return groups_.begun() == 2; }));
  groups_.Release(1);
  EXPECT_TRUE(Eventually([this] { return acknowledged_ == 6; }));
  EXPECT_EQ(groups_.begun(), 2);
  EXPECT_TRUE(Eventually([this] { return notified_ == 2; }));
}

TEST_F(GroupCommitTest, PushLeavesTheGroupToALogThread) {
  Append();
  commit_->Push();
  ASSERT_TRUE(Eventually([this] { return groups_.begun() == 1; }));
  EXPECT_FALSE(commit_->TrySync()) << "one is under way";
  groups_.Release(1);
  EXPECT_TRUE(Eventually([this] { return progress_.durable() == 1; }));
  EXPECT_TRUE(Eventually([this] { return notified_ == 1; }));
}

TEST_F(GroupCommitTest, TrySyncRunsAGroupOnlyWhereOneIsWanted) {
  EXPECT_FALSE(commit_->TrySync());
  Append(Durability::kNone);
  EXPECT_FALSE(commit_->TrySync()) << "nobody wants it";
  Append(Durability::kAlways);
  groups_.Release(1);
  EXPECT_TRUE(commit_->TrySync());
  EXPECT_EQ(progress_.durable(), 2u);
}

TEST_F(GroupCommitTest, WaitingForWhatWasNotAppendedIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(commit_->WaitUntilDurable(1)));
}

TEST_F(GroupCommitTest, AFailureWakesEveryoneWhoWaits) {
  WaitOnAThread(Append());
  ASSERT_TRUE(Eventually([this] { return groups_.begun() == 1; }));
  for (int i = 0; i < 3; ++i) WaitOnAThread(Append());
  groups_.FailFromNowOn();
  groups_.Release(1);
  EXPECT_TRUE(Eventually([this] { return refused_ == 4; }));
  EXPECT_EQ(acknowledged_, 0);
}

TEST_F(GroupCommitTest, WhatIsSyncedEachSecondIsSyncedAndTheMarkFollows) {
  groups_.Release(10);
  Append(Durability::kEverySecond);
  EXPECT_TRUE(Eventually([this] { return progress_.durable() == 1; }));
  EXPECT_TRUE(Eventually([this] { return groups_.marks() == 1; }));
}

class TwoGroupsTest : public GroupCommitTest {
 protected:
  TwoGroupsTest() : GroupCommitTest(2) {}
};

TEST_F(TwoGroupsTest, ASecondGroupBeginsOnceAsMuchIsWaiting) {
  Append();
  WaitOnAThread(Append());
  ASSERT_TRUE(Eventually([this] { return groups_.begun() == 1; }));
  const SequenceNumber third = Append();
  EXPECT_FALSE(commit_->TrySync()) << "less than the first one took";
  Append();
  commit_->Push();
  EXPECT_TRUE(Eventually([this] { return groups_.begun() == 2; }));
  groups_.Release(2);
  EXPECT_TRUE(commit_->WaitUntilDurable(third).ok());
}

}  // namespace
}  // namespace varve
