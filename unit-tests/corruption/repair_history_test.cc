// What a repair makes of old versions: where records are lost nothing is told of the time before
// it, as some of the past would be missing without anybody seeing it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "unit-tests/corruption/repair_store.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/test_store.h"
#include "varve/history_status.h"

namespace varve {
namespace {

using testing::TestStore;

EngineOptions Keeping() {
  EngineOptions options;
  options.history.time_ms = 86'400'000;
  return options;
}

class RepairHistoryTest : public ::testing::Test {
 protected:
  SequenceNumber Fill(const std::string& value) {
    WriteBatch batch;
    for (int i = 0; i < 1000; ++i)
      batch.Put(fmt::format("key{:04}", i), value + std::string(100, '.'));
    const absl::StatusOr<CommitResult> committed = store_->Write({}, &batch);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return committed->sequence;
  }
  // Damages the value where it stands in a file of the kind.
  void FlipIn(const std::string& kind, const std::string& value) {
    for (const auto& file : std::filesystem::directory_iterator(store_.directory.path())) {
      const std::string path = file.path().string();
      if (!path.ends_with(kind)) continue;
      const size_t found = testing::ReadFile(path).find(value);
      if (found == std::string::npos) continue;
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(found))
          .write("!?", 2);
      return;
    }
    FAIL() << value << " stands in no file";
  }
  std::string Repair() { return testing::RepairAndOpen(&store_); }
  std::string ValueAt(SequenceNumber version) {
    const auto snapshot = store_->SnapshotAt(kDefaultNamespace, version);
    if (!snapshot.ok()) return FirstOfTrimmed(snapshot.status()) ? "trimmed" : "error";
    std::string value;
    const auto read = store_->Get({.snapshot = snapshot->get()}, "key0999", &value);
    return read.ok() && read->found ? value.substr(0, value.find('.')) : "nothing";
  }

  TestStore store_{Keeping()};
};

TEST_F(RepairHistoryTest, WhereRecordsAreLostThePastBeginsAnew) {
  for (const std::string damaged : {".seg", ".log"}) {
    const SequenceNumber old = Fill("old" + damaged);
    ASSERT_TRUE(store_->Flush().ok());
    const SequenceNumber next = Fill("next" + damaged);
    EXPECT_EQ(ValueAt(old), "old");
    EXPECT_EQ(ValueAt(next), "next");
    store_.Close();
    FlipIn(damaged, (damaged == ".seg" ? "old" : "next") + damaged);
    EXPECT_NE(Repair().find("versions from before the repair can't be read any more"),
              std::string::npos);
    // What was in segments before the damaged end of a log is whole.
    EXPECT_EQ(ValueAt(old), damaged == ".seg" ? "trimmed" : "old");
    if (damaged == ".log") EXPECT_NE(ValueAt(next), "next");
    const SequenceNumber again = Fill("again");
    Fill("last");
    EXPECT_EQ(ValueAt(again), "again");
  }
}

TEST_F(RepairHistoryTest, WhereNothingIsLostThePastStays) {
  const SequenceNumber old = Fill("old");
  ASSERT_TRUE(store_->Flush().ok());
  Fill("next");
  store_.Close();
  std::filesystem::remove(store_.directory.path() + "/MANIFEST");
  EXPECT_NE(Repair(), "") << "the manifest's copy takes its place";
  EXPECT_EQ(ValueAt(old), "old");
}

}  // namespace
}  // namespace varve
