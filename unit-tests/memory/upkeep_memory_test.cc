// Flushes, merges, opening, closing and the background threads where memory runs out
// (memory_fixture.h).
#include "unit-tests/memory/memory_fixture.h"

namespace varve::testing {
namespace {

TEST_F(MemoryTest, FlushAndCompact) {
  Fill();
  const auto prepare = [&] { Put("flushed", std::to_string(content_.size())); };
  const auto check = [this](const std::string& when) { ExpectContent(when); };
  FailEach(
      "flush", [&] { return Call([&] { return store_->Flush(); }); }, prepare, check);
  FailEach(
      "merge", [&] { return Call([&] { return store_->Compact({}, {}); }); }, prepare, check);
  FailEach(
      "statistics",
      [&] {
        Call([&] { return store_->Statistics(); });
        return absl::OkStatus();
      },
      [] {}, check);
  store_.Reopen();
  ExpectContent("reopened");
}

TEST_F(MemoryTest, CloseAndOpen) {
  Fill();
  const std::string path = store_.directory.path();
  const TempDir copies;
  std::unique_ptr<StorageEngine> store;
  const std::string copy = copies.File("store");
  const auto begin = [&] {
    store.reset();
    std::filesystem::remove_all(copy);
    std::filesystem::copy(path, copy);
  };
  const auto open = [&]() -> absl::Status {
    absl::StatusOr<std::unique_ptr<StorageEngine>> opened =
        Call([&] { return StorageEngine::Open(copy, store_.options); });
    if (!opened.ok()) return opened.status();
    store = *std::move(opened);
    return absl::OkStatus();
  };
  const auto check = [&](const std::string& when) {
    store.reset();
    ASSERT_TRUE(open().ok()) << when;
    EXPECT_TRUE(ContentOf(*store) == content_) << when;
  };
  FailEach("open", open, begin, check, /*times=*/20, /*all_up_to=*/16);
  const auto opened = [&] {
    store.reset();
    ASSERT_TRUE(open().ok());
  };
  FailEach(
      "close", [&] { return Call([&] { return store->Close(); }); }, opened, check,
      AllocationFaults::kForGood,
      /*all_up_to=*/16);
}

class BackgroundMemoryTest : public MemoryTest,
                             public ::testing::WithParamInterface<const char*> {};

// A segment that a merge replaced was removed by a destructor, which copied its path; without
// memory the process ended. A tree that was on disk, and for which there was no memory to show it,
// is made once more.
TEST_P(BackgroundMemoryTest, ThreadGoesOn) {
  Fill();
  // Which thread is tested with what keeps it busy; without syncs the others' work comes thicker.
  if (!std::string_view(GetParam()).starts_with("varve-log")) store_->SetSync(Durability::kNone);
  int round = 0;
  const std::string filling(4000, 'f');
  const auto work = [&] {
    ++round;
    for (int i = 0; i < 40; ++i) {
      const std::string key = fmt::format("key{:04}", (round * 7 + i) % 300),
                        value = fmt::format("{}{}", round, filling);
      absl::Status status = store_->Put(key, value);
      if (status.ok()) {
        content_[key] = value;
      } else {
        ExpectLackOfMemory(status, "put");
      }
    }
    if (absl::Status status = store_->DeleteRange("key0200", "key0203"); status.ok()) {
      content_.erase(content_.lower_bound("key0200"), content_.lower_bound("key0203"));
    }
    for (const absl::Status& status : {store_->Flush(), store_->Compact({}, {})}) {
      if (!status.ok()) ExpectLackOfMemory(status, "upkeep");
    }
  };
  for (const uint64_t failures : {uint64_t{1}, AllocationFaults::kForGood}) {
    for (uint64_t nth = 1; nth < 5000; nth += 1 + nth / 3) {
      const std::string when =
          fmt::format("{}, allocation {} of {} failing", GetParam(), nth, failures);
      bool reached;
      {
        const AllocationFaults faults(GetParam(), nth, failures);
        work();
        reached = faults.reached();
      }
      // As soon as there is memory everything goes on by itself.
      absl::Status status = absl::UnknownError("");
      for (int tries = 0; tries < 100 && !status.ok(); ++tries) {
        status = store_->Put("again", std::to_string(nth));
        if (status.ok()) content_["again"] = std::to_string(nth);
        if (status.ok()) status = store_->Flush();
        if (status.ok()) status = store_->Compact({}, {});
        if (!status.ok()) absl::SleepFor(absl::Milliseconds(50));
      }
      ASSERT_TRUE(status.ok()) << when << ": " << status;
      ExpectContent(when);
      if (!reached || HasFailure()) break;
    }
  }
  ExpectContentAfterCrash(GetParam());
  store_.Reopen();
  ExpectContent("reopened");
}

INSTANTIATE_TEST_SUITE_P(Threads, BackgroundMemoryTest,
                         ::testing::Values("varve-flush", "varve-merge", "varve-log",
                                           "varve-files"),
                         [](const auto& thread) {
                           std::string name = thread.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace varve::testing
