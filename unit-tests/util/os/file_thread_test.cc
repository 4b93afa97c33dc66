#include "util/os/file_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Eventually;

// A job that does `todo` steps, one `pause` after the other.
class Steps : public FileThread::Job {
 public:
  explicit Steps(int todo, absl::Duration pause = absl::ZeroDuration())
      : todo_(todo), pause_(pause) {}

  SteadyTime Step() noexcept override {
    EXPECT_FALSE(running_.exchange(true)) << "a step ran beside another one";
    thread_ = std::this_thread::get_id();
    ++done_;
    running_ = false;
    return --todo_ > 0 ? SteadyNow() + pause_ : kEndOfTime;
  }
  int done() const { return done_; }
  std::thread::id thread() const { return thread_; }

 private:
  std::atomic<int> todo_;
  const absl::Duration pause_;
  std::atomic<int> done_{0};
  std::atomic<bool> running_{false};
  std::atomic<std::thread::id> thread_;
};

TEST(FileThreadTest, AJobDoesItsStepsOnceItIsWoken) {
  FileThread thread;
  Steps job(5);
  thread.Add(&job);
  EXPECT_EQ(job.done(), 0);
  thread.Wake(&job);
  EXPECT_TRUE(Eventually([&] { return job.done() == 5; }));
  thread.Wake(&job);
  EXPECT_TRUE(Eventually([&] { return job.done() == 6; }));
  thread.Remove(&job);
}

TEST(FileThreadTest, JobsShareTheThreadAndNoneHoldsUpAnother) {
  FileThread thread;
  Steps endless(1 << 30), finite(100);
  for (Steps* job : {&endless, &finite}) {
    thread.Add(job);
    thread.Wake(job);
  }
  EXPECT_TRUE(Eventually([&] { return finite.done() == 100; }));
  EXPECT_TRUE(Eventually([&] { return endless.done() > 0; }));
  EXPECT_EQ(endless.thread(), finite.thread());
  thread.Remove(&endless);
  thread.Remove(&finite);
}

TEST(FileThreadTest, WakingCutsAPauseShort) {
  FileThread thread;
  Steps job(2, absl::Hours(1));
  thread.Add(&job);
  thread.Wake(&job);
  EXPECT_TRUE(Eventually([&] { return job.done() == 1; }));
  thread.Wake(&job);
  EXPECT_TRUE(Eventually([&] { return job.done() == 2; }));
  thread.Remove(&job);
}

TEST(FileThreadTest, NoStepRunsOnceAJobIsRemoved) {
  struct Slow : FileThread::Job {
    SteadyTime Step() noexcept override {
      EXPECT_FALSE(removed);
      running = true;
      if (!begun.HasBeenNotified()) begun.Notify();
      may_end.WaitForNotification();
      running = false;
      return SteadyNow();  // the next step is due at once, as long as the job is known
    }
    absl::Notification begun, may_end;
    std::atomic<bool> running{false}, removed{false};
  };
  FileThread thread;
  Slow job;
  thread.Add(&job);
  thread.Wake(&job);
  job.begun.WaitForNotification();
  std::thread remover([&] {
    thread.Remove(&job);
    EXPECT_FALSE(job.running);
    job.removed = true;
  });
  job.may_end.Notify();
  remover.join();
  thread.Wake(&job);
}

}  // namespace
}  // namespace varve
