// What a repair makes of keys that expire and of namespaces: what it saves keeps its instants and
// its place, and whatever was lost of the index, each key goes when its time is up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "db/format/file_names.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "tools/repair/repair.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/memory_file_system.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using testing::ManualClock;
using testing::MemoryFileSystem;
using ::testing::Not;
using Files = MemoryFileSystem::Files;

constexpr NamespaceId kUsers = kFirstNamedNamespace;
constexpr uint64_t kHour = 3'600'000;
const std::string kDirectory = "data";

class RepairExpiryTest : public ::testing::Test {
 protected:
  // By namespace and key: "value@expiry".
  using Content = std::map<std::string, std::string>;

  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    MemoryFileSystem file_system;
    const auto store = Open(&file_system);
    WriteBatch batch;
    batch.CreateNamespace({.id = kUsers, .name = "users", .options = {.max_keys = 1000}});
    ASSERT_TRUE(store->Write({}, &batch).ok());
    for (int segment = 0; segment < 3; ++segment) {
      if (segment > 0) ASSERT_TRUE(store->Flush().ok());
      for (int i = 0; i < 10; ++i) {
        const std::string key = fmt::format("key{}", segment * 5 + i),
                          value = fmt::format("{}.{}", segment, i);
        batch.Put(key, value, kDefaultNamespace,
                  i % 2 == 0 ? ManualClock::kStart + kHour * (1 + i) : kNoExpiry);
        batch.Put(key, value, kUsers,
                  i % 3 == 0 ? ManualClock::kStart + kHour * (1 + i) : kNoExpiry);
      }
      ASSERT_TRUE(store->Write({}, &batch).ok());
    }
    // Something without expiry in the place of what has one: the index is looked at, and forgets
    // about it.
    batch.Put("key0", "stays");
    ASSERT_TRUE(store->Write({}, &batch).ok());
    whole_ = ContentOf(store.get(), kUsers);
    ASSERT_TRUE(store->Close().ok());
    files_ = file_system.files();
  }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  std::unique_ptr<StorageEngine> Open(FileSystem* file_system) const {
    EngineOptions options;
    options.file_system = file_system;
    options.clock = &clock_;
    options.log_file_size = 64u << 10;
    options.write_buffer_size = 1u << 20;
    options.runs_per_level = 16;
    return StorageEngine::Open(kDirectory, options).value();
  }

  static Content ContentOf(StorageEngine* store, NamespaceId users) {
    Content content;
    for (const NamespaceId space : {kDefaultNamespace, users}) {
      const auto iterator = store->NewIterator({.space = space}, {}, {}, nullptr);
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        content[fmt::format("{}/{}", space == users ? "users" : "default", iterator->key())] =
            fmt::format("{}@{}", iterator->value(), iterator->expiry_ms());
      }
      EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    }
    return content;
  }

  // Repairs the files, which are damaged; nothing damaged is left.
  void Repair(Files files) {
    MemoryFileSystem file_system(std::move(files));
    const absl::StatusOr<RepairReport> report = RepairStore(&file_system, kDirectory, {});
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_FALSE(report->nothing_to_do());
    saved_.clear();
    for (const RepairReport::Entry& entry : report->saved)
      saved_ += entry.file + ": " + entry.what + "\n";
    const auto verified = VerifyStore(&file_system, kDirectory, {});
    ASSERT_TRUE(verified.ok() && verified->damaged_places == 0) << verified.status();
    repaired_ = file_system.files();
  }
  // Of the repaired store, whose second namespace is called `users`. Then all that expires goes,
  // and the counts are right.
  Content Check(std::string_view users) {
    clock_.SetWall(ManualClock::kStart);
    MemoryFileSystem file_system(repaired_);
    const auto store = Open(&file_system);
    const NamespaceList list = store->Namespaces().value();
    EXPECT_EQ(list.namespaces.size(), 2u);
    const NamespaceDescription* const space = list.Find(users);
    EXPECT_NE(space, nullptr);
    if (space == nullptr) return {};
    Content content = ContentOf(store.get(), space->id);
    clock_.SetWall(ManualClock::kStart + 100 * kHour);
    size_t left = 0;
    for (const auto& [key, value] : content) left += value.ends_with("@0");
    EXPECT_EQ(ContentOf(store.get(), space->id).size(), left);
    uint64_t counted = 0;
    for (const NamespaceDescription& each : list.namespaces) {
      counted += store->Count({.space = each.id}, {}, {}).value().keys;
    }
    EXPECT_EQ(counted, left) << "what has expired is counted, as nobody knows of it";
    return content;
  }
  void ExpectValuesOfTheWhole(const Content& content) const {
    for (const auto& [key, value] : content) {
      const auto of_whole = whole_.find(key);
      ASSERT_NE(of_whole, whole_.end()) << key;
      if (value == of_whole->second) continue;
      EXPECT_THAT(value.substr(0, value.find('.')), ::testing::AnyOf("0", "1"))
          << "older: " << key << ' ' << value;
    }
  }
  static std::string Path(std::string_view name) { return kDirectory + "/" + std::string(name); }

  mutable ManualClock clock_;
  Files files_;
  Content whole_;
  Files repaired_;
  std::string saved_;
};

TEST_F(RepairExpiryTest, AFlipAnywhereInASegment) {
  int tried = 0;
  for (const auto& [path, bytes] : files_) {
    if (!path.ends_with(".seg")) continue;
    for (uint64_t offset = 0; offset < bytes.size(); offset += 7) {
      SCOPED_TRACE(fmt::format("{} with a flip at {}", path, offset));
      Files files = files_;
      files[path][offset] = static_cast<char>(files[path][offset] ^ 4);
      Repair(std::move(files));
      const Content content = Check("users");
      ExpectValuesOfTheWhole(content);
      EXPECT_GE(content.size() + 1, whole_.size());
      ++tried;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(tried, 100);
}

TEST_F(RepairExpiryTest, AFlipAnywhereInTheLog) {
  int tried = 0;
  for (const auto& [path, bytes] : files_) {
    if (!path.ends_with(".log")) continue;
    for (uint64_t offset = 0; offset < bytes.size(); ++offset) {
      if (bytes[offset] == 0) continue;
      Files files = files_;
      files[path][offset] = static_cast<char>(files[path][offset] ^ 4);
      MemoryFileSystem file_system(files);
      if (VerifyStore(&file_system, kDirectory, {})->damaged_places == 0) continue;
      SCOPED_TRACE(fmt::format("{} with a flip at {}", path, offset));
      Repair(std::move(files));
      ExpectValuesOfTheWhole(Check("users"));
      ++tried;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(tried, 100);
}

TEST_F(RepairExpiryTest, WithTheManifestsCopyNamesAndOptionsStay) {
  files_[Path("MANIFEST")][40] ^= 1;
  Repair(files_);
  EXPECT_EQ(Check("users"), whole_);
}

// The index is nobody's namespace.
TEST_F(RepairExpiryTest, WithoutAnyManifestThereAreTheKeysAndNoNames) {
  files_.erase(Path("MANIFEST"));
  files_.erase(Path("MANIFEST.copy"));
  Repair(files_);
  EXPECT_THAT(saved_, Not(HasSubstr("4294967295")));
  const Content content = Check("recovered-1");
  Content expected;  // the highest generation is taken for the default namespace
  for (const auto& [key, value] : whole_) {
    expected[key.starts_with("users/") ? "default" + key.substr(5) : "users" + key.substr(7)] =
        value;
  }
  EXPECT_EQ(content, expected);
}

// A tree that was rebuilt from its segments had lost the names of its namespaces, although the
// manifest's copy had them.
TEST_F(RepairExpiryTest, ACopyWhoseSegmentsAreGoneStillKnowsNamesAndTheClock) {
  files_.erase(Path("MANIFEST"));
  for (auto file = files_.begin(); file != files_.end(); ++file) {
    if (!file->first.ends_with(".seg")) continue;
    files_.erase(file);
    break;
  }
  Repair(files_);
  const Content content = Check("users");
  ExpectValuesOfTheWhole(content);
  EXPECT_GT(content.size(), whole_.size() / 2);
}

}  // namespace
}  // namespace varve
