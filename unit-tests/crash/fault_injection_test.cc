// The n-th call fails, for every n of a run, once or until the resource is back: no false answer,
// no false acknowledgement, no crash; what can go on goes on without a restart; and a crash
// afterwards finds what was acknowledged and nothing that was never sent.
//
// VARVE_FAULT_SEEDS sets how many runs there are; the sanitizers try one call in some only.
#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "unit-tests/crash/deterministic_threads.h"
#include "unit-tests/crash/workload.h"
#include "util/base/status.h"

namespace varve::testing {
namespace {

#if defined(NDEBUG) && !defined(VARVE_SANITIZED)
constexpr uint64_t kSeeds = 2, kStride = 1;
#else
constexpr uint64_t kSeeds = 1, kStride = 7;
#endif
// Some calls are rare: more runs are made for them.
constexpr uint64_t kFewCalls = 8, kMostSeeds = 20;
constexpr int kFaultySteps = 60;
// Seconds of the simulation's clock until a store that can go on does.
constexpr int kPatience = 60;

struct Fault {
  int error;
  FileOperation operation;
  uint64_t times;
};

// Once a log could not be written or synced, it is over; nothing else may end it.
bool MayEndTheLog(const Fault& fault) {
  return fault.error == EIO &&
         (fault.operation == FileOperation::kWrite || fault.operation == FileOperation::kSync);
}

bool MayFailReads(const Fault& fault) {
  return fault.operation == FileOperation::kOpen || fault.operation == FileOperation::kRead ||
         fault.operation == FileOperation::kSize;
}

class FaultRun {
 public:
  FaultRun(uint64_t seed, const Fault& fault, uint64_t nth)
      : seed_(seed),
        fault_(fault),
        threads_(seed),
        file_system_(EmptyDisk(), &DeterministicThreads::MaySwitch),
        workload_(seed, &file_system_, &history_, &clock_) {
    if (nth > 0) {
      file_system_.Fail(fault.operation, nth,
                        IoError(fault.error, NameOf(fault.operation), "injected"), fault.times);
    }
  }

  absl::Status Run() {
    if (const absl::Status opened = workload_.Open(); absl::IsFailedPrecondition(opened))
      return opened;
    VARVE_RETURN_IF_ERROR(workload_.Run(kFaultySteps));
    if (!MayFailReads(fault_) && workload_.store() != nullptr) {
      workload_.Put().IgnoreError();  // notices what a read would only learn by waiting
      // Where flushes fail, the write was refused and has noticed nothing.
      VARVE_RETURN_IF_ERROR(workload_.CheckAndNotice());
    }
    file_system_.ClearFaults();
    calls_ = file_system_.calls(fault_.operation);
    VARVE_RETURN_IF_ERROR(GoOn());
    VARVE_RETURN_IF_ERROR(CheckAfterPowerCut(SimulatedDisk::kLoseAll));
    VARVE_RETURN_IF_ERROR(CheckAfterPowerCut(4 + seed_));
    return Restart();
  }

  // While calls could fail.
  uint64_t calls() const { return calls_; }
  uint64_t failed_calls() const { return file_system_.failed_calls(); }
  uint64_t errors() const { return workload_.errors(); }

 private:
  static absl::Status Bad(const std::string& what) { return absl::FailedPreconditionError(what); }

  // The resource is back.
  absl::Status GoOn() {
    absl::Status written = workload_.Put();
    if (workload_.store() == nullptr) return Bad("does not open: " + written.ToString());
    if (const absl::Status log = workload_.store()->log_status(); !log.ok()) {
      if (!MayEndTheLog(fault_)) return Bad("the log gave up: " + log.ToString());
      if (!absl::IsUnavailable(written))
        return Bad("a write after the log's end: " + written.ToString());
      return workload_.Check();
    }
    const auto go_on = [&]() -> absl::Status {
      VARVE_RETURN_IF_ERROR(written);
      VARVE_RETURN_IF_ERROR(workload_.store()->Flush());
      return workload_.store()->Compact({}, {});
    };
    absl::Status status = go_on();
    for (int i = 0; i < kPatience && !status.ok(); ++i) {
      absl::SleepFor(absl::Seconds(1));
      written = workload_.Put();
      status = go_on();
    }
    if (!status.ok()) return Bad("does not go on: " + status.ToString());
    return workload_.Check();
  }

  absl::Status CheckAfterPowerCut(uint64_t choice) {
    const History::Bounds bounds =
        history_.After(file_system_.trace_size(), /*power_was_cut=*/true);
    SimulatedFileSystem after(file_system_.disk().CutPower(choice),
                              &DeterministicThreads::MaySwitch);
    VARVE_ASSIGN_OR_RETURN(
        const auto store,
        StorageEngine::Open(kStoreDirectory, SmallOptions(seed_, &after, &clock_)));
    const SequenceNumber last = StatisticOf(*store, "recovered_sequence");
    if (last < bounds.least || history_.BatchAt(last) > bounds.most ||
        history_.At(last) == nullptr) {
      return Bad(fmt::format("after a power cut: {} is there, {} was acknowledged, {} sent", last,
                             bounds.least, bounds.most));
    }
    VARVE_RETURN_IF_ERROR(CheckContents(store.get(), *history_.At(last), bounds.known));
    return store->Close();
  }

  absl::Status Restart() {
    workload_.Close().IgnoreError();
    VARVE_RETURN_IF_ERROR(workload_.Open());
    VARVE_RETURN_IF_ERROR(workload_.Check());
    VARVE_RETURN_IF_ERROR(workload_.Put());
    return workload_.Close();
  }

  const uint64_t seed_;
  const Fault fault_;
  const DeterministicThreads threads_;
  SimulatedFileSystem file_system_;
  History history_;
  ManualClock clock_;
  Workload workload_;
  uint64_t calls_ = 0;
};

class FaultInjectionTest : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    SetUpLibraries();
  }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};

TEST_P(FaultInjectionTest, NoCallThatFailsMakesTheStoreLie) {
  const Fault fault = GetParam();
  const char* const wanted = getenv("VARVE_FAULT_SEEDS");
  const uint64_t seeds = wanted != nullptr ? strtoull(wanted, nullptr, 10) : kSeeds;
  uint64_t tried = 0, hit = 0;
  for (uint64_t seed = 1; seed <= seeds || (tried < kFewCalls && seed <= kMostSeeds); ++seed) {
    uint64_t calls = 0;
    {
      FaultRun run(seed, fault, 0);
      const absl::Status status = run.Run();
      ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
      ASSERT_EQ(run.errors(), 0u);
      calls = run.calls();
    }
    for (uint64_t nth = 1; nth <= calls; nth += kStride) {
      FaultRun run(seed, fault, nth);
      const absl::Status status = run.Run();
      ASSERT_TRUE(status.ok()) << fmt::format("seed {}, call {} of {}: ", seed, nth, calls)
                               << status;
      ++tried;
      if (run.failed_calls() > 0) ++hit;
    }
  }
  RecordProperty("tried", std::to_string(tried));
  EXPECT_GT(tried, 0u);
  EXPECT_EQ(hit, tried);
}

std::vector<Fault> AllFaults() {
  std::vector<Fault> faults;
  for (const uint64_t times : {uint64_t{1}, SimulatedFileSystem::kUnlimited}) {
    for (size_t operation = 0; operation < static_cast<size_t>(FileOperation::kCount);
         ++operation) {
      // Files as small as these are never cut. Checkpoints, which make links, have their own tests.
      if (operation != static_cast<size_t>(FileOperation::kGrow) &&
          operation != static_cast<size_t>(FileOperation::kTruncate) &&
          operation != static_cast<size_t>(FileOperation::kLink)) {
        faults.push_back({EIO, static_cast<FileOperation>(operation), times});
      }
    }
    for (const FileOperation operation :
         {FileOperation::kCreate, FileOperation::kGrow, FileOperation::kRename,
          FileOperation::kCreateDirectory}) {
      faults.push_back({ENOSPC, operation, times});
    }
    for (const FileOperation operation :
         {FileOperation::kOpen, FileOperation::kCreate, FileOperation::kSyncDirectory,
          FileOperation::kList, FileOperation::kLock}) {
      faults.push_back({EMFILE, operation, times});
    }
  }
  return faults;
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultInjectionTest, ::testing::ValuesIn(AllFaults()),
                         [](const ::testing::TestParamInfo<Fault>& tested) {
                           std::string name =
                               fmt::format("{}_{}_{}", strerrorname_np(tested.param.error),
                                           NameOf(tested.param.operation),
                                           tested.param.times == 1 ? "once" : "for_good");
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace varve::testing
