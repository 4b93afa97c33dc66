#include "db/engine/compactor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "db/engine/flusher.h"
#include "unit-tests/db/engine/engine_parts.h"
#include "unit-tests/testing/eager_picker.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::EngineParts;
using testing::Eventually;
using testing::FailingFileSystem;
using testing::FileOperation;

// A picker that leaves every tree as it is, so that only requests merge.
class ContentPicker final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape&, const EngineOptions&, bool) const override {
    return std::nullopt;
  }
  double Debt(const TreeShape&, const EngineOptions&) const override { return 0; }
};

class CompactorTest : public ::testing::Test {
 protected:
  CompactorTest() { flusher_.Start(); }
  ~CompactorTest() override {
    if (compactor_ != nullptr) compactor_->Stop();
    parts_.OnInstalled(nullptr);
    flusher_.Stop();
  }
  void Start(std::shared_ptr<const CompactionPicker> picker) {
    compactor_ = std::make_unique<Compactor>(parts_.Parts(), std::move(picker),
                                             &parts_.version_set(), &parts_.pipeline());
    parts_.OnInstalled([this](bool flushed) { compactor_->NoteInstalled(flushed); });
    compactor_->Start();
  }
  // Makes a run of two keys.
  void Flush(const std::string& value) {
    ASSERT_TRUE(parts_.Put("a", value).ok());
    ASSERT_TRUE(parts_.Put("z", value).ok());
    const absl::Status flushed = parts_.pipeline().FlushAll();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }
  size_t Runs() { return parts_.versions().PresentVersion()->runs().size(); }

  EngineParts parts_{{.runs_per_level = 2}};
  Flusher flusher_{parts_.Parts(), &parts_.version_set(), &parts_.pipeline(), &parts_.sweeper()};
  std::unique_ptr<Compactor> compactor_;
};

TEST_F(CompactorTest, ARequestMergesARangeIntoOneRun) {
  for (const char* value : {"1", "2", "3"}) Flush(value);
  ASSERT_TRUE(parts_.Delete("z").ok());
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  EXPECT_EQ(Runs(), 4u);
  Start(std::make_shared<ContentPicker>());
  const absl::Status merged = compactor_->CompactRange("", "");
  ASSERT_TRUE(merged.ok()) << merged;
  EXPECT_EQ(Runs(), 1u);
  EXPECT_EQ(parts_.Get("a"), "3");
  EXPECT_EQ(parts_.Get("z"), "-");
  EXPECT_EQ(compactor_->compactions(), 1u);
  EXPECT_GT(compactor_->input_bytes(), compactor_->compacted_bytes());
  EXPECT_GT(compactor_->compacted_bytes(), 0u);
}

TEST_F(CompactorTest, AnEmptyTreeNeedsNoMerge) {
  Start(std::make_shared<ContentPicker>());
  EXPECT_TRUE(compactor_->CompactRange("", "").ok());
  EXPECT_EQ(compactor_->compactions(), 0u);
}

TEST_F(CompactorTest, ARequestThatFailsSaysSoAndChangesNothing) {
  Flush("old");
  Flush("new");
  parts_.files().Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("no disk"),
                      FailingFileSystem::kUnlimited, ".seg");
  Start(std::make_shared<ContentPicker>());
  const auto before = parts_.Files(".seg");
  EXPECT_TRUE(absl::IsResourceExhausted(compactor_->CompactRange("", "")));
  EXPECT_EQ(parts_.Files(".seg"), before);
  EXPECT_EQ(Runs(), 2u);
  EXPECT_EQ(parts_.Get("a"), "new");
  parts_.files().ClearFaults();
  EXPECT_TRUE(compactor_->CompactRange("", "").ok());
  EXPECT_EQ(Runs(), 1u);
}

TEST_F(CompactorTest, TheTreeIsKeptInThePickersShape) {
  Start(std::make_shared<testing::EagerPicker>());
  for (int i = 0; i < 8; ++i) Flush(std::to_string(i));
  EXPECT_TRUE(Eventually([&] { return Runs() <= 2; })) << Runs();
  // The compactor counts a merge once readers see what it made.
  EXPECT_TRUE(Eventually([&] { return compactor_->compactions() > 0; }));
  EXPECT_EQ(parts_.Get("a"), "7");
}

TEST_F(CompactorTest, AMergeThatFailsIsCountedAndTriedAgain) {
  for (int i = 0; i < 8; ++i) Flush(std::to_string(i));
  parts_.files().Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("no disk"),
                      FailingFileSystem::kUnlimited, ".seg");
  Start(std::make_shared<testing::EagerPicker>());
  compactor_->Wake();
  EXPECT_TRUE(Eventually([&] { return compactor_->failed_compactions() >= 1; }));
  EXPECT_EQ(compactor_->compactions(), 0u);
  EXPECT_EQ(Runs(), 8u);
  parts_.files().ClearFaults();
  EXPECT_TRUE(Eventually([&] { return Runs() <= 2; })) << Runs();
  EXPECT_EQ(parts_.Get("a"), "7");
}

TEST_F(CompactorTest, APurgeTellsOfItsEndBeforeAnotherMergeBegins) {
  for (int i = 0; i < 8; ++i) Flush(std::to_string(i));
  const PurgedKey purged{.user_key = "a", .generations = {1}, .up_to = kMaxSequence};
  Start(std::make_shared<testing::EagerPicker>());
  int calls = 0;
  const absl::StatusOr<uint64_t> records = compactor_->Purge(purged, [&] {
    ++calls;
    EXPECT_FALSE(compactor_->under_way().has_value());
    EXPECT_EQ(parts_.Get("a"), "-");
    EXPECT_GE(compactor_->compactions(CompactionReason::kRange), 1u);
    return absl::OkStatus();
  });
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_GE(*records, 1u);
  EXPECT_EQ(calls, 1);
  const absl::Status failed =
      compactor_->Purge(purged, [] { return absl::DataLossError("on command"); }).status();
  EXPECT_TRUE(absl::IsDataLoss(failed)) << failed;
  EXPECT_EQ(parts_.Get("z"), "7");
}

TEST_F(CompactorTest, RequestsAreRefusedBehindAStop) {
  Flush("value");
  Start(std::make_shared<ContentPicker>());
  compactor_->Stop();
  EXPECT_TRUE(absl::IsAborted(compactor_->CompactRange("", "")));
  compactor_->Stop();
  EXPECT_EQ(compactor_->compactions(), 0u);
}

}  // namespace
}  // namespace varve
