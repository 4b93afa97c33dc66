// A store whose directory is bounded: it refuses what adds data, as on a full disk, and goes on
// when there is room again.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
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

TEST(BoundedDiskTest, AStoreStaysWithinItAndGoesOnWhenThereIsRoom) {
  TempDir dir;
  BoundedFileSystem files(PosixFileSystem(), dir.File("data"), kLimit, 8u << 20);
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 1u << 20;
  options.segment_size = 1u << 20;
  options.file_system = &files;
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open(dir.File("data"), options);
  ASSERT_TRUE(store.ok()) << store.status();
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

}  // namespace
}  // namespace varve
