// MultiGet of keys that are in no cache: the disk is asked for all of a group before the first of
// them is waited for.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::TestStore;

// Counts what is asked for ahead, and what of it before the next read.
class AskingFileSystem final : public FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, FaultFileSystem::OpenForRead(path));
    return std::make_unique<AskingFile>(this, std::move(file));
  }
  void Watch() {
    asked = asked_before_reading = 0;
    has_read = false;
  }

  std::atomic<int> asked{0}, asked_before_reading{0};
  std::atomic<bool> has_read{false};

 private:
  class AskingFile final : public ForwardingFile {
   public:
    AskingFile(AskingFileSystem* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(*owner) {}
    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      owner_.has_read = true;
      return ForwardingFile::Read(offset, size, buffer);
    }
    bool Prefetch(uint64_t offset, uint64_t size) const override {
      ++owner_.asked;
      if (!owner_.has_read) ++owner_.asked_before_reading;
      return ForwardingFile::Prefetch(offset, size);
    }

   private:
    AskingFileSystem& owner_;
  };
};

std::string KeyOfGroup(int i) { return fmt::format("key{:05}", i); }

class ColdMultiGetTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ColdMultiGetTest, AsksForAGroupAtOnce) {
  constexpr int kKeys = 2000, kWanted = 50;
  AskingFileSystem file_system;
  EngineOptions options;
  options.file_system = &file_system;
  options.sync = Durability::kNone;
  TestStore store(options);
  WriteBatch batch;
  for (int i = 0; i < kKeys; ++i)
    batch.Put(KeyOfGroup(i), std::string(GetParam(), static_cast<char>('a' + i % 26)));
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  ASSERT_NE(store.Get(KeyOfGroup(7)), "(missing)");  // opens what values lie in

  std::vector<std::string> keys;
  for (int i = 0; i < kWanted; ++i) keys.push_back(KeyOfGroup(100 + i * 37));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<MultiGetResult> results(kWanted);
  file_system.Watch();
  ASSERT_TRUE(store->MultiGet({}, views, absl::MakeSpan(results)).ok());
  EXPECT_GT(file_system.asked_before_reading, kWanted / 2);
  for (int i = 0; i < kWanted; ++i) {
    ASSERT_TRUE(results[i].status.ok() && results[i].result.found) << keys[i];
    EXPECT_EQ(results[i].value,
              std::string(GetParam(), static_cast<char>('a' + (100 + i * 37) % 26)));
  }
  file_system.Watch();
  ASSERT_TRUE(store->MultiGet({}, views, absl::MakeSpan(results)).ok());
  EXPECT_EQ(file_system.asked, 0) << "now they are cached";
  EXPECT_FALSE(file_system.has_read);
}

INSTANTIATE_TEST_SUITE_P(ValueSizes, ColdMultiGetTest, ::testing::Values(300, 900, 4000));

}  // namespace
}  // namespace varve
