#include "db/log/log_file_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/fault_file_system.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

using testing::LogUser;
using testing::Replay;
using testing::Replayed;

// Remembers the largest read of all.
class MeasuringFileSystem final : public testing::FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, FaultFileSystem::OpenForRead(path));
    return std::make_unique<MeasuredFile>(&largest_read, std::move(file));
  }

  std::atomic<size_t> largest_read{0};

 private:
  class MeasuredFile final : public ForwardingFile {
   public:
    MeasuredFile(std::atomic<size_t>* largest, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), largest_(*largest) {}
    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      largest_ = std::max(largest_.load(), size);
      return ForwardingFile::Read(offset, size, buffer);
    }

   private:
    std::atomic<size_t>& largest_;
  };
};

TEST(LogFileReaderTest, RecoveryReadsALongFileInPieces) {
  constexpr size_t kLargest = 2u << 20;
  std::vector<std::string> groups;
  for (int i = 0; i < 60; ++i)
    groups.push_back(std::string(static_cast<size_t>(50'000 + i * 997), 'a' + i % 26));
  groups.push_back(std::string(kLargest, 'L'));
  for (int i = 0; i < 60; ++i)
    groups.push_back(std::string(static_cast<size_t>(1 + i * 97), 'a' + i % 26));
  testing::TempDir dir;
  LogUser user(dir.path(), 16u << 20);
  user.Open();
  for (const std::string& group : groups) ASSERT_TRUE(user.Commit(group).ok());
  user.Drop();
  MeasuringFileSystem file_system;
  const Replayed replayed = Replay(dir.path(), 0, {}, &file_system);
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  ASSERT_EQ(replayed.batches.size(), groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    ASSERT_TRUE(replayed.batches[i].second == groups[i]) << i;
  }
  EXPECT_LE(file_system.largest_read, kLargest + kLogPageSize);
}

}  // namespace
}  // namespace varve
