// Threads that drive the calls which they make, against servers that are made up.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "db/hbase_rpc/hbase_client.h"
#include "unit-tests/db/hbase_rpc/fake_hbase.h"

namespace varve {
namespace {

using testing::FakeAnswer;
using testing::FakeHbase;
using testing::FakeRequest;
using Rows = std::vector<HbaseClient::RowValue>;

constexpr std::chrono::minutes kLongTime{1};

FakeAnswer RowAsked(const FakeRequest& request) {
  hbase::pb::GetRequest get;
  EXPECT_TRUE(get.ParseFromString(request.parameter));
  hbase::pb::GetResponse response;
  hbase::pb::Cell* cell = response.mutable_result()->add_cell();
  cell->set_row(get.get().row());
  cell->set_value("1");
  return FakeAnswer::Message(response);
}

// The descriptor is one of epoll, as that of an I/O loop is, which watches an event by its edges.
class HbaseDriverTest : public ::testing::Test {
 protected:
  HbaseDriverTest() {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    EXPECT_EQ(::epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &event), 0);
    cluster_.SetRegions({{"", 0}});
    auto client = HbaseClient::Open({.quorum = cluster_.quorum()});
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  ~HbaseDriverTest() override {
    ::close(epoll_);
    ::close(event_);
  }

  void Get(std::function<void(const Rows& rows)> done) {
    client_->GetRows("t", {"a"}, std::chrono::steady_clock::now() + kLongTime,
                     [done = std::move(done)](const Rows& rows) { done(rows); });
  }
  // Makes a call, drives it until the server holds its answer back, and drives no longer.
  void AskAndStopDriving(std::promise<Rows>* answered) {
    is_held_ = true;
    const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
    Get([answered](const Rows& rows) { answered->set_value(rows); });
    driver->Wait(kLongTime, [] { return false; });
    EXPECT_TRUE(was_asked_.HasBeenNotified());
  }
  void Wake() const {
    const uint64_t one = 1;
    EXPECT_EQ(::write(event_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }

  // Returns whether there was an event.
  bool TakeEvent() const {
    epoll_event event;
    return ::epoll_wait(epoll_, &event, 1, 0) == 1;
  }

  const int event_ = ::eventfd(0, EFD_NONBLOCK);
  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  absl::Notification may_answer_;
  absl::Notification was_asked_;
  // Set before the first call: whoever is asked tells it by an event, and waits for may_answer_.
  bool is_held_ = false;
  FakeHbase cluster_{1, [this](const FakeRequest& request) {
                       if (is_held_) {
                         if (!was_asked_.HasBeenNotified()) was_asked_.Notify();
                         Wake();
                         may_answer_.WaitForNotification();
                       }
                       return RowAsked(request);
                     }};
  std::unique_ptr<HbaseClient> client_;
};

TEST_F(HbaseDriverTest, AnswersComeOnTheThreadThatDrives) {
  const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
  ASSERT_NE(driver, nullptr);
  // The second call takes the connection and the region of the first one.
  for (int call = 0; call < 2; ++call) {
    std::optional<std::thread::id> thread;
    Get([&](const Rows& rows) {
      EXPECT_TRUE(rows[0].ok()) << rows[0].status();
      thread = std::this_thread::get_id();
    });
    EXPECT_FALSE(thread.has_value()) << "nobody has driven yet";
    driver->Wait(kLongTime, [&] { return thread.has_value(); });
    EXPECT_EQ(thread, std::this_thread::get_id());
  }
  EXPECT_EQ(client_->Statistics().calls, 2u);
  EXPECT_EQ(client_->Statistics().in_flight, 0u);
}

TEST_F(HbaseDriverTest, TheDescriptorWakesTheThread) {
  const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
  is_held_ = true;
  bool is_answered = false;
  Get([&](const Rows&) { is_answered = true; });
  driver->Wait(kLongTime, [&] { return is_answered; });
  EXPECT_TRUE(TakeEvent()) << "the server was asked";
  // Also again, while the call waits.
  for (int round = 0; round < 2; ++round) {
    std::thread other([this] { Wake(); });
    driver->Wait(kLongTime, [&] { return is_answered; });
    other.join();
    EXPECT_FALSE(is_answered);
    EXPECT_TRUE(TakeEvent());
  }
  may_answer_.Notify();
  driver->Wait(kLongTime, [&] { return is_answered; });
  EXPECT_TRUE(is_answered);
}

TEST_F(HbaseDriverTest, ADescriptorThatCanBeReadAlreadyEndsTheWait) {
  Wake();
  const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
  for (int round = 0; round < 2; ++round) driver->Wait(kLongTime, [] { return false; });
}

TEST_F(HbaseDriverTest, AThreadThatWaitsForAnAnswerIsAnsweredByTheClient) {
  const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
  const HbaseClient::Undriven undriven;
  std::promise<std::thread::id> answered;
  Get([&](const Rows&) { answered.set_value(std::this_thread::get_id()); });
  EXPECT_NE(answered.get_future().get(), std::this_thread::get_id());
}

TEST_F(HbaseDriverTest, OtherThreadsAreAnsweredByTheClient) {
  const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
  std::promise<std::thread::id> answered;
  std::thread other(
      [&] { Get([&](const Rows&) { answered.set_value(std::this_thread::get_id()); }); });
  const std::thread::id other_id = other.get_id();
  other.join();
  const std::thread::id id = answered.get_future().get();
  EXPECT_NE(id, std::this_thread::get_id());
  EXPECT_NE(id, other_id);
}

TEST_F(HbaseDriverTest, CallsOfADriverThatHasGoneAreAnsweredLater) {
  std::promise<Rows> answered;
  AskAndStopDriving(&answered);
  may_answer_.Notify();
  const Rows rows = answered.get_future().get();
  EXPECT_TRUE(rows[0].ok()) << rows[0].status();
  // The thread may drive again.
  const std::unique_ptr<StoreDriver> driver = client_->DriveOnThisThread(epoll_);
  EXPECT_NE(driver, nullptr);
}

TEST_F(HbaseDriverTest, AClientThatClosesAnswersCallsOfADriverThatHasGone) {
  std::promise<Rows> answered;
  AskAndStopDriving(&answered);
  client_.reset();
  EXPECT_TRUE(absl::IsCancelled(answered.get_future().get()[0].status()));
  may_answer_.Notify();
}

}  // namespace
}  // namespace varve
