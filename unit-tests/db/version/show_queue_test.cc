#include "db/version/show_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "type/tree_key.h"
#include "util/base/hash.h"

namespace varve {
namespace {

// One record, whose value is its sequence. It may wait with applying until somebody lets it.
class OneRecord final : public ShowQueue::Batch {
 public:
  OneRecord(WriteBuffer* buffer, std::string_view user_key, SequenceNumber sequence,
            absl::Notification* gate = nullptr)
      : key_(TreeKey(1, user_key).view()), value_(std::to_string(sequence)), gate_(gate) {
    buffer_ = buffer;
    last_ = sequence;
    const RecordView record{.key = key_, .value = value_, .sequence = sequence};
    buffer->Reserve(WriteBuffer::SizeOf(record), 0);
    memory_ = buffer->Take(WriteBuffer::SizeOf(record));
  }

  void Apply() noexcept override {
    if (gate_ != nullptr) gate_->WaitForNotification();
    buffer_->Insert({.key = key_, .value = value_, .sequence = last_}, HashKey(key_),
                    /*readers_wait=*/false, &memory_, &records_);
  }

 private:
  const std::string key_, value_;
  absl::Notification* const gate_;
  char* memory_ = nullptr;
};

class ShowQueueTest : public ::testing::Test {
 protected:
  std::string Get(std::string_view user_key, SequenceNumber at) {
    const std::string key(TreeKey(1, user_key).view());
    WriteBuffer::Found found;
    return buffer_.Get(key, HashKey(key), at, &found) ? std::string(found.record.value) : "-";
  }
  std::vector<SequenceNumber> Arrived() {
    std::vector<SequenceNumber> sequences;
    WriteBuffer::Position position;
    buffer_.Walk(&position, kMaxSequence, [&](const RecordView& record, const RecordView*) {
      sequences.push_back(record.sequence);
    });
    return sequences;
  }

  WriteBuffer buffer_{1 << 20, 1, 20'000};
  std::atomic<SequenceNumber> visible_{kNoSequence};
  ShowQueue queue_{&visible_};
};

TEST_F(ShowQueueTest, ABatchThatIsDoneFirstIsShownAfterThoseBeforeIt) {
  absl::Notification gate;
  OneRecord first(&buffer_, "k", 1, &gate), second(&buffer_, "k", 2), third(&buffer_, "l", 3);
  queue_.EnterLocked(&first);
  queue_.EnterLocked(&second);
  queue_.EnterLocked(&third);
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (OneRecord* batch : {&third, &second, &first}) {
    threads.emplace_back([&, batch] {
      queue_.Finish(batch);
      ++done;
    });
  }
  EXPECT_EQ(visible_.load(), kNoSequence);
  EXPECT_EQ(done.load(), 0);
  gate.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(visible_.load(), 3u);
  EXPECT_EQ(Arrived(), (std::vector<SequenceNumber>{1, 2, 3}));
  EXPECT_EQ(Get("k", 1), "1");
  EXPECT_EQ(Get("k", 2), "2");
  EXPECT_EQ(Get("l", 3), "3");
}

TEST_F(ShowQueueTest, ALeaderThatDrainsAwaitsTheBatchThatItHasOffered) {
  absl::Notification gate;
  OneRecord before(&buffer_, "j", 1, &gate), own(&buffer_, "k", 2), other(&buffer_, "l", 3);
  queue_.EnterLocked(&before);
  std::thread first([&] { queue_.Finish(&before); });
  queue_.EnterLocked(&own);
  queue_.OfferLocked(&own);
  EXPECT_EQ(visible_.load(), kNoSequence);
  queue_.EnterLocked(&other);
  std::thread second([&] { queue_.Finish(&other); });
  gate.Notify();
  queue_.DrainLocked();
  EXPECT_EQ(visible_.load(), 3u);
  EXPECT_EQ(queue_.TakeOfferedLocked(), nullptr);
  first.join();
  second.join();
}

TEST_F(ShowQueueTest, ALeaderWhoseBatchIsTheOldestNeedNotAwaitIt) {
  OneRecord own(&buffer_, "k", 1), other(&buffer_, "l", 2);
  queue_.EnterLocked(&own);
  queue_.OfferLocked(&own);
  EXPECT_EQ(visible_.load(), 1u);
  EXPECT_EQ(queue_.TakeOfferedLocked(), nullptr);
  queue_.EnterLocked(&other);
  queue_.Finish(&other);
  EXPECT_EQ(visible_.load(), 2u);
}

TEST_F(ShowQueueTest, ADrainWaitsForABatchThatTakesLong) {
  absl::Notification gate, drained;
  OneRecord batch(&buffer_, "k", 1, &gate);
  queue_.EnterLocked(&batch);
  std::thread writer([&] { queue_.Finish(&batch); });
  std::thread drainer([&] {
    queue_.DrainLocked();
    EXPECT_EQ(visible_.load(), 1u);
    drained.Notify();
  });
  EXPECT_FALSE(drained.HasBeenNotified());
  gate.Notify();
  writer.join();
  drainer.join();
}

TEST_F(ShowQueueTest, ManyThreadsShowTheirBatchesInOrder) {
  constexpr int kThreads = 4, kRounds = 2000;
  absl::Mutex commit_lock;
  SequenceNumber last = kNoSequence;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        std::unique_ptr<OneRecord> batch;
        SequenceNumber sequence;
        {
          absl::MutexLock lock(&commit_lock);
          if (i % 50 == t) queue_.DrainLocked();
          sequence = ++last;
          batch = std::make_unique<OneRecord>(&buffer_, "k" + std::to_string(i % 7), sequence);
          queue_.EnterLocked(batch.get());
        }
        queue_.Finish(batch.get());
        // What a thread has written it finds, whatever others do.
        ASSERT_GE(visible_.load(), sequence);
        ASSERT_EQ(Get("k" + std::to_string(i % 7), sequence), std::to_string(sequence));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<SequenceNumber> arrived = Arrived();
  EXPECT_EQ(arrived.size(), size_t{kThreads * kRounds});
  EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
}

// The places of the queue are used again and again, also when nobody finishes for long.
TEST_F(ShowQueueTest, MoreBatchesThanPlacesWaitForOneAnother) {
  constexpr SequenceNumber kBatches = 300;
  absl::Notification gate;
  std::vector<std::unique_ptr<OneRecord>> batches;
  std::vector<std::thread> threads;
  std::thread opener;
  for (SequenceNumber i = 1; i <= kBatches; ++i) {
    batches.push_back(std::make_unique<OneRecord>(&buffer_, "k", i, i == 1 ? &gate : nullptr));
    if (i == 200) opener = std::thread([&] { gate.Notify(); });
    queue_.EnterLocked(batches.back().get());
    threads.emplace_back([this, batch = batches.back().get()] { queue_.Finish(batch); });
  }
  for (std::thread& thread : threads) thread.join();
  opener.join();
  EXPECT_EQ(visible_.load(), kBatches);
  EXPECT_EQ(Arrived().size(), kBatches);
}

}  // namespace
}  // namespace varve
