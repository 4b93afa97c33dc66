// COMPACT stores values that are kept apart from their keys as the compression of their namespace
// says now, however they were stored before.
#include "db/compaction/value_recompression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "db/format/file_names.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "db/version/manifest.h"
#include "fmt/format.h"
#include "tools/verify.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::FileOperation;
using testing::TestStore;

constexpr Compression kLz4Pages{CompressionMethod::kLz4, 0};
constexpr Compression kZstdPages{CompressionMethod::kZstd, kDefaultZstdLevel};
constexpr uint64_t kPages = 1500;

std::string KeyOfPage(uint64_t number) { return fmt::format("page:{:08}", number); }

std::string RandomPage(uint64_t seed, size_t size = 4000) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// 4000 bytes that compress to less than half.
std::string Page(uint64_t number) {
  std::mt19937_64 random(number);
  std::string page;
  while (page.size() < 4000) {
    page +=
        fmt::format("<item id=\"{}\" state=\"{}\"><name>part {}</name></item>\n", random() % 10000,
                    random() % 2 == 0 ? "in stock" : "ordered", random() % 1000);
  }
  return page;
}

using ValueOf = std::function<std::string(uint64_t number)>;

uint64_t FillPages(TestStore& store, uint64_t keys, const ValueOf& value,
                   NamespaceId space = kDefaultNamespace) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < keys; ++i) {
    WriteBatch batch;
    const std::string text = value(i);
    batch.Put(KeyOfPage(i), text, space);
    bytes += text.size();
    EXPECT_TRUE(store->Write({}, &batch).ok());
  }
  EXPECT_TRUE(store->Flush().ok());
  return bytes;
}

void ExpectPages(TestStore& store, uint64_t keys, const ValueOf& value,
                 NamespaceId space = kDefaultNamespace) {
  for (uint64_t i = 0; i < keys; ++i) {
    std::string found;
    const auto result = store->Get({.space = space}, KeyOfPage(i), &found);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->found) << i;
    ASSERT_EQ(found, value(i)) << i;
  }
}

void ExpectNoDamage(const std::string& directory) {
  const auto report = VerifyStore(PosixFileSystem(), directory, {});
  ASSERT_TRUE(report.ok()) << report.status();
  for (const StoreFinding& finding : report->findings) {
    if (finding.kind == StoreFinding::Kind::kDamage)
      ADD_FAILURE() << finding.file << " at " << finding.offset << ": " << finding.what;
  }
}

EngineOptions OptionsForPages(Compression compression) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 1 << 20;
  options.log_file_size = 1 << 20;
  options.value_separation_size = 1024;
  options.compression = compression;
  return options;
}

// Returns the bytes of the files in which values lie: of values alone, and of the log.
uint64_t BytesOfValues(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".val") || path.ends_with(".log")) bytes += entry.file_size();
  }
  return bytes;
}

std::vector<std::string> ValueFilesIn(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().string().ends_with(".val")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void Alter(TestStore& store, NamespaceId id, Compression how) {
  NamespaceDescription space = *store->Namespaces()->Find(id);
  space.options.compression = how;
  WriteBatch batch;
  batch.AlterNamespace(space);
  ASSERT_TRUE(store->Write({}, &batch).ok());
}

TEST(RecompressionTest, CompactCompressesWhatWasKeptApartBefore) {
  TestStore store(OptionsForPages({}));
  const uint64_t plain = FillPages(store, kPages, Page);
  ASSERT_TRUE(store->Compact("", "").ok());
  store.Close();
  ASSERT_GT(BytesOfValues(store.directory.path()), plain);
  store.options.compression = kZstdPages;
  store.Open();
  ASSERT_TRUE(store->Compact("", "").ok());
  ExpectPages(store, kPages, Page);
  const RangeSize size = store->EstimateSize(kDefaultNamespace, "", "");
  EXPECT_LT(size.stored_value_bytes * 2, size.plain_value_bytes);
  for (int opened = 0; opened < 2; ++opened) {
    store.Reopen();
    ExpectPages(store, kPages, Page);
  }
  store.Close();
  // The log keeps two files, of 1 MiB each.
  EXPECT_LT(BytesOfValues(store.directory.path()), plain / 2 + (2 << 20));
  ExpectNoDamage(store.directory.path());
}

TEST(RecompressionTest, OtherMergesLeaveValuesWhereTheyAre) {
  TestStore store(OptionsForPages({}));
  FillPages(store, kPages, Page);
  ASSERT_TRUE(store->Compact("", "").ok());
  store.options.compression = kZstdPages;
  store.Reopen();
  const std::vector<std::string> before = ValueFilesIn(store.directory.path());
  ASSERT_FALSE(before.empty());
  // Small values bring merges about.
  for (int round = 0; round < 12; ++round) {
    for (uint64_t i = 0; i < 400; ++i)
      ASSERT_TRUE(store->Put(KeyOfPage(i * 3) + "/small", "v").ok());
    ASSERT_TRUE(store->Flush().ok());
  }
  ASSERT_TRUE(store->Compact("q", "").ok());  // waits for the merges before it
  EXPECT_EQ(ValueFilesIn(store.directory.path()), before);
}

TEST(RecompressionTest, ANamespaceIsCompressedByItself) {
  TestStore store(OptionsForPages({}));
  for (const char* name : {"pages", "others"}) {
    NamespaceDescription space{.id = store->Namespaces()->next_id, .name = name};
    WriteBatch batch;
    batch.CreateNamespace(space);
    ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  const NamespaceId pages = store->Namespaces()->Find("pages")->id;
  const NamespaceId others = store->Namespaces()->Find("others")->id;
  // Their values lie in the same files.
  for (uint64_t i = 0; i < kPages; ++i) {
    WriteBatch batch;
    batch.Put(KeyOfPage(i), Page(i), pages);
    batch.Put(KeyOfPage(i), Page(i + 1), others);
    ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  ASSERT_TRUE(store->Flush().ok());
  uint64_t last = UINT64_MAX;
  for (const Compression how : {kLz4Pages, kZstdPages}) {
    Alter(store, pages, how);
    ASSERT_TRUE(store->Compact("", "", pages).ok());
    const RangeSize size = store->EstimateSize(pages, "", "");
    EXPECT_LT(size.stored_value_bytes * 10, size.plain_value_bytes * 6);
    EXPECT_LT(size.stored_value_bytes, last);
    last = size.stored_value_bytes;
    ExpectPages(store, kPages, Page, pages);
  }
  Alter(store, pages, {});
  ASSERT_TRUE(store->Compact("", "", pages).ok());
  for (int opened = 0; opened < 2; ++opened) {
    ExpectPages(store, kPages, Page, pages);
    ExpectPages(
        store, kPages, [](uint64_t i) { return Page(i + 1); }, others);
    store.Reopen();
  }
  store.Close();
  EXPECT_GT(BytesOfValues(store.directory.path()), 2 * kPages * 4000);
  ExpectNoDamage(store.directory.path());
}

TEST(RecompressionTest, OldVersionsAndMetadataGoWithTheirValues) {
  TestStore store(OptionsForPages({}));
  constexpr uint64_t kFarAway = 4'000'000'000'000;
  const auto put = [&](uint64_t i, const std::string& value) {
    WriteBatch batch;
    batch.Put(KeyOfPage(i), value, {.expiry_ms = kFarAway + i, .metadata = "of a page"});
    ASSERT_TRUE(store->Write({}, &batch).ok());
  };
  for (uint64_t i = 0; i < 300; ++i) put(i, Page(i));
  const auto snapshot = store->GetSnapshot();
  for (uint64_t i = 0; i < 300; ++i) put(i, Page(i + 7));
  ASSERT_TRUE(store->Flush().ok());
  Alter(store, kDefaultNamespace, kZstdPages);
  ASSERT_TRUE(store->Compact("", "").ok());
  const RangeSize size = store->EstimateSize(kDefaultNamespace, "", "");
  EXPECT_GT(size.plain_value_bytes, 2 * 300 * 4000u);  // of both versions
  EXPECT_LT(size.stored_value_bytes * 2, size.plain_value_bytes);
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(store.Get(KeyOfPage(i), snapshot.get()), Page(i));
    std::string value;
    const auto found = store->Get({.with_metadata = true}, KeyOfPage(i), &value);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(value, Page(i + 7));
    ASSERT_EQ(found->MetadataView(), "of a page");
    ASSERT_EQ(found->expiry_ms, kFarAway + i);
  }
}

TEST(RecompressionTest, DamagedValuesStayAndAreNamed) {
  TestStore store(OptionsForPages({}));
  const uint64_t plain = FillPages(store, kPages, Page);
  ASSERT_TRUE(store->Compact("", "").ok());
  store.Close();
  const std::string damaged = ValueFilesIn(store.directory.path()).front();
  {
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(damaged) / 2));
    file.write("damage", 6);
  }
  store.options.compression = kZstdPages;
  store.Open();
  ASSERT_TRUE(store->Compact("", "").ok());
  uint64_t lost = 0;
  for (uint64_t i = 0; i < kPages; ++i) {
    const std::string value = store.Get(KeyOfPage(i));
    if (value == Page(i)) continue;
    ++lost;
    EXPECT_NE(value.find(std::filesystem::path(damaged).filename().string()), std::string::npos)
        << value;
  }
  EXPECT_EQ(lost, 1u);
  store.Close();
  EXPECT_LT(BytesOfValues(store.directory.path()), plain / 2 + (4 << 20));
}

// --- What it reads -------------------------------------------------------------------------------

class LooksTest : public ::testing::Test {
 protected:
  static constexpr NamespaceGeneration kGeneration = 1;

  ValueFileWriter::Options Files() {
    return {.file_system = &file_system_,
            .directory = directory_.path(),
            .next_file_number = [this] { return next_number_++; },
            .registry = &registry_};
  }

  // Has a flush keep `count` values apart.
  void Flush(uint64_t count, const ValueOf& value) {
    const auto flush = NewFlushSeparation(
        {.separation_size = [](NamespaceGeneration) { return uint64_t{1024}; }}, Files());
    for (uint64_t i = 0; i < count; ++i) {
      const TreeKey key(kGeneration, KeyOfPage(i));
      const std::string text = value(i);
      const auto written = flush->Separate({.key = key.view(), .value = text, .sequence = i + 1});
      ASSERT_TRUE(written.ok()) << written.status();
      handles_.emplace_back(written->value);
    }
    ASSERT_TRUE(flush->Finish().ok());
    flush->Keep();
    file_ = registry_.Acquire(&file_system_, directory_.path(), 1);
  }

  std::unique_ptr<ValueSeparation> NewJob() {
    Manifest manifest;
    manifest.has_history = true;
    return NewValueRecompression(Files(), CompressionPolicy(NamespaceTable(manifest), kZstdPages));
  }

  // Has a COMPACT look at all of them. Returns how many it read, and counts in `moved_` how many it
  // moved.
  uint64_t Compact() {
    const std::unique_ptr<ValueSeparation> job = NewJob();
    const uint64_t before = file_system_.calls(FileOperation::kRead);
    moved_ = 0;
    for (uint64_t i = 0; i < handles_.size(); ++i) {
      const TreeKey key(kGeneration, KeyOfPage(i));
      const auto written = job->Separate(
          {.key = key.view(), .value = handles_[i], .sequence = i + 1, .flags = kSeparatedValue});
      EXPECT_TRUE(written.ok()) << written.status();
      if (!written.ok()) continue;
      const bool is_moved = written->value != handles_[i];
      EXPECT_EQ((written->flags & kCompressed) != 0, is_moved);
      moved_ += is_moved ? 1 : 0;
    }
    EXPECT_TRUE(job->Finish().ok());
    return file_system_.calls(FileOperation::kRead) - before;
  }

  const testing::TempDir directory_;
  testing::FaultFileSystem file_system_;
  ValueFiles registry_;
  uint64_t next_number_ = 1;
  std::shared_ptr<ValueFile> file_;  // with the values
  std::vector<std::string> handles_;
  uint64_t moved_ = 0;
};

TEST_F(LooksTest, FewValuesAreReadOfThoseThatNeedNothing) {
  Flush(64 + 64 * 10, [](uint64_t i) { return RandomPage(i, 2000); });
  EXPECT_EQ(Compact(), 64u + 10);
  EXPECT_EQ(moved_, 0u);
}

TEST_F(LooksTest, AllAreReadAgainOnceOneGotSmaller) {
  // One of 64 is looked at when the pages begin.
  Flush(1000, [](uint64_t i) { return i < 500 ? RandomPage(i, 2000) : Page(i); });
  Compact();
  EXPECT_GT(moved_, 500u - 64);
  EXPECT_LE(moved_, 500u);
}

TEST_F(LooksTest, AnErrorOfTheDiskIsTheJobs) {
  Flush(10, Page);
  const std::unique_ptr<ValueSeparation> job = NewJob();
  const TreeKey key(kGeneration, KeyOfPage(0));
  const RecordView record{
      .key = key.view(), .value = handles_[0], .sequence = 1, .flags = kSeparatedValue};
  file_system_.Fail(FileOperation::kRead, 1, absl::InternalError("no cable"), /*times=*/1);
  EXPECT_TRUE(absl::IsInternal(job->Separate(record).status()));
  EXPECT_TRUE(job->Separate(record).ok());
}

}  // namespace
}  // namespace varve
