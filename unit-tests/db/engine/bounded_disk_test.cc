// A store whose directory is bounded: it refuses what adds data, as on a full disk, and goes on
// when there is room again.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <system_error>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/bounded_file_system.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::TempDir;

constexpr uint64_t kLimit = 24u << 20;

uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    std::error_code gone;  // the background removes and renames files meanwhile
    const uint64_t size = entry.is_regular_file(gone) ? entry.file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

EngineOptions SmallEngine(FileSystem* files) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 1u << 20;
  options.segment_size = 1u << 20;
  options.file_system = files;
  return options;
}

TEST(BoundedDiskTest, AStoreStaysWithinItAndGoesOnWhenThereIsRoom) {
  TempDir dir;
  BoundedFileSystem files(PosixFileSystem(), dir.File("data"), kLimit, 8u << 20);
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open(dir.File("data"), SmallEngine(&files));
  ASSERT_TRUE(store.ok()) << store.status();
  files.KeepReserve();
  const auto key = [](int i) { return "key" + std::to_string(100'000 + i); };
  absl::Status status;
  int written = 0;
  // A writer stops at the reserve, as the server does.
  for (; status.ok() && !files.IsTight(); ++written) {
    status = (*store)->Put(key(written), std::string(1000, static_cast<char>('a' + written % 26)));
    ASSERT_LE(files.used(), kLimit);
  }
  EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::IsResourceExhausted(files.Refusal()));
  EXPECT_GT(written, 4000);
  EXPECT_LE(BytesIn(dir.File("data")), kLimit);
  // Deletes go on, and what they free comes back.
  ASSERT_TRUE((*store)->DeleteRange("key", "kez").ok());
  const absl::Status merged = (*store)->Compact("", "");
  EXPECT_TRUE(merged.ok()) << merged;
  // A flush that the limit refused is tried again after a while, and files go in the background.
  EXPECT_TRUE(
      testing::Eventually([&] { return (*store)->Put("again", std::string(1000, 'x')).ok(); }));
  EXPECT_TRUE(testing::Eventually([&] { return !files.IsTight(); }));
  ASSERT_TRUE((*store)->Close().ok());
  ASSERT_TRUE(files.Measure().ok());
  EXPECT_EQ(files.used(), BytesIn(dir.File("data")));
}

TEST(BoundedDiskTest, AStoreOpensWhereOnlyTheReserveIsLeft) {
  TempDir dir;
  constexpr int kKeys = 8000;
  const auto key = [](int i) { return "key" + std::to_string(100'000 + i); };
  {
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir.File("data"), SmallEngine(PosixFileSystem()));
    ASSERT_TRUE(store.ok()) << store.status();
    std::mt19937_64 random(1);
    std::string value(1000, '\0');
    for (int i = 0; i < kKeys; ++i) {
      for (char& c : value) c = static_cast<char>(random());
      ASSERT_TRUE((*store)->Put(key(i), value).ok());
    }
    ASSERT_TRUE((*store)->Compact("", "").ok());
    ASSERT_TRUE((*store)->Close().ok());
  }
  const uint64_t has = BytesIn(dir.File("data"));
  BoundedFileSystem files(PosixFileSystem(), dir.File("data"), has + has / 2, has);
  ASSERT_TRUE(files.Measure().ok());
  ASSERT_GT(files.used(), files.bound().unreserved());
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open(dir.File("data"), SmallEngine(&files));
  ASSERT_TRUE(store.ok()) << store.status();
  files.KeepReserve();
  EXPECT_TRUE(files.IsTight());
  std::string value;
  const absl::StatusOr<ReadResult> read = (*store)->Get({}, key(kKeys - 1), &value);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->found);
  // Deletes go on, and give room back.
  ASSERT_TRUE((*store)->DeleteRange("key", "kez").ok());
  EXPECT_TRUE(
      testing::Eventually([&] { return (*store)->Compact("", "").ok() && !files.IsTight(); }));
  EXPECT_TRUE(
      testing::Eventually([&] { return (*store)->Put("again", std::string(1000, 'x')).ok(); }));
  EXPECT_LE(BytesIn(dir.File("data")), files.bound().limit);
  ASSERT_TRUE((*store)->Close().ok());
}

}  // namespace
}  // namespace varve
