#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/forwarding_file_system.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

// Counts the spares that become segments.
class RenamesOfSpares : public ForwardingFileSystem {
 public:
  RenamesOfSpares() : ForwardingFileSystem(PosixFileSystem()) {}
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (from.ends_with(".spare") && to.ends_with(".seg")) ++taken_;
    return ForwardingFileSystem::Rename(from, to);
  }
  int taken() const { return taken_; }

 private:
  std::atomic<int> taken_ = 0;
};

bool HasSpares(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".spare") return true;
  return false;
}

std::string ValueInRound(int key, int round) {
  return fmt::format("{}-{}-", key, round) + std::string(200, 'v');
}

class SpareSegmentsTest : public ::testing::Test {
 protected:
  void Open() {
    options_.write_buffer_size = uint64_t{1} << 20;
    options_.sync = Durability::kNone;
    options_.file_system = &files_;
    auto store = StorageEngine::Open(directory_.path(), options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Puts all keys anew, flushes and merges.
  void Round(int round) {
    for (int key = 0; key < kKeys; ++key)
      ASSERT_TRUE(store_->Put(fmt::format("key{:06}", key), ValueInRound(key, round)).ok());
    ASSERT_TRUE(store_->Flush().ok());
    ASSERT_TRUE(store_->Compact("", "").ok());
  }
  void ExpectRound(int round) {
    std::string value;
    for (int key = 0; key < kKeys; ++key) {
      const auto result = store_->Get(ReadOptions(), fmt::format("key{:06}", key), &value);
      ASSERT_TRUE(result.ok()) << result.status();
      ASSERT_TRUE(result->found);
      ASSERT_EQ(value, ValueInRound(key, round));
    }
  }

  static constexpr int kKeys = 3000;
  testing::TempDir directory_;
  RenamesOfSpares files_;
  EngineOptions options_;
  std::unique_ptr<StorageEngine> store_;
};

TEST_F(SpareSegmentsTest, FlushesAndMergesWriteOverFilesThatAreOutOfUse) {
  Open();
  int round = 0;
  // Files are out of use once the file thread has had its turn.
  EXPECT_TRUE(testing::Eventually([&] {
    Round(++round);
    return files_.taken() > 0 || HasFatalFailure();
  }));
  ExpectRound(round);
  ASSERT_TRUE(store_->Close().ok());
  store_.reset();
  EXPECT_FALSE(HasSpares(directory_.path()));
  Open();
  ExpectRound(round);
}

TEST_F(SpareSegmentsTest, AStoreAtRestHasNone) {
  Open();
  Round(1);
  Round(2);
  EXPECT_TRUE(testing::Eventually([&] { return !HasSpares(directory_.path()); }));
  ExpectRound(2);
}

TEST_F(SpareSegmentsTest, OpeningRemovesThoseThatACrashLeft) {
  Open();
  Round(1);
  store_.reset();
  const std::string directory = directory_.path();
  for (const char* name : {"000900.seg.spare", "000901.val.spare", "000902.chg.spare"}) {
    const auto file = files_.OpenForWrite(directory + "/" + name, /*create=*/true);
    ASSERT_TRUE(file.ok() && (*file)->Write(0, "old bytes").ok());
  }
  Open();
  EXPECT_FALSE(HasSpares(directory));
  ExpectRound(1);
}

}  // namespace
}  // namespace varve
