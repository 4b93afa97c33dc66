// Compressed values: what they take on disk, that every read gives them plain, and what damage
// does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "db/format/file_names.h"
#include "db/segment/segment_dictionary.h"
#include "db/segment/segment_footer.h"
#include "db/version/manifest.h"
#include "fmt/format.h"
#include "tools/verify.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/test_store.h"
#include "util/os/file_system.h"
#include "varve/compaction_filter.h"
#include "varve/difference.h"
#include "varve/history_status.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using testing::TestStore;

constexpr Compression kLz4{CompressionMethod::kLz4, 0};
constexpr Compression kZstd{CompressionMethod::kZstd, kDefaultZstdLevel};

EngineOptions Options(Compression compression, size_t buffer = 1 << 20) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = buffer;
  options.log_file_size = 1 << 20;
  options.segment_size = 4 << 20;
  options.compression = compression;
  return options;
}

std::string KeyOfUser(uint64_t number) { return fmt::format("user:{:08}", number); }

// Of 200 to 800 bytes, of which a good part is random.
std::string Json(uint64_t number, int version = 0) {
  std::mt19937_64 random(number * 1000 + static_cast<uint64_t>(version));
  static constexpr const char* kWords[] = {"order",   "shipped", "pending", "invoice", "paid",
                                           "express", "gift",    "return",  "discount"};
  std::string json = fmt::format(
      R"({{"id":{},"token":"{:016x}","email":"user{}@example.com","city":"City {}","age":{},)"
      R"("active":{},"created_at":"2026-{:02}-{:02}T{:02}:{:02}:00Z","tags":[)",
      number, random(), random() % 1000000, random() % 50, 18 + random() % 60,
      random() % 2 == 0 ? "true" : "false", 1 + random() % 12, 1 + random() % 28, random() % 24,
      random() % 60);
  const size_t size = 200 + random() % 600;
  while (json.size() < size) json += fmt::format("\"{}\",", kWords[random() % 9]);
  return json + "\"end\"]}";
}

std::string RandomBytes(uint64_t seed, size_t size = 500) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

using ValueOf = std::function<std::string(uint64_t number)>;

// Returns the bytes of keys and values.
uint64_t Fill(TestStore& store, uint64_t begin, uint64_t end, const ValueOf& value,
              NamespaceId space = kDefaultNamespace) {
  uint64_t bytes = 0;
  WriteBatch batch;
  for (uint64_t i = begin; i < end; ++i) {
    const std::string key = KeyOfUser(i), text = value(i);
    bytes += key.size() + text.size();
    batch.Put(key, text, space);
    if (batch.size() == 64 || i + 1 == end) EXPECT_TRUE(store->Write({}, &batch).ok());
  }
  return bytes;
}

uint64_t FilesOf(const std::string& directory, std::string_view ending) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().string().ends_with(ending)) bytes += entry.file_size();
  }
  return bytes;
}

std::vector<std::string> SegmentsOf(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().string().ends_with(".seg")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status CompactAll(TestStore& store, NamespaceId space = kDefaultNamespace) {
  const absl::Status flushed = store->Flush();
  return flushed.ok() ? store->Compact("", "", space) : flushed;
}

void ExpectAll(TestStore& store, uint64_t count, const ValueOf& value,
               NamespaceId space = kDefaultNamespace) {
  for (uint64_t i = 0; i < count; ++i) {
    std::string found;
    const auto result = store->Get({.space = space}, KeyOfUser(i), &found);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->found) << i;
    ASSERT_EQ(found, value(i)) << i;
    ASSERT_EQ(result->value_size, found.size());
  }
}

// Walks through the keys from `begin` on, there and back.
void ExpectWalks(TestStore& store, uint64_t begin, uint64_t end, const ValueOf& value,
                 NamespaceId space = kDefaultNamespace) {
  const auto iterator = store->NewIterator({.space = space}, KeyOfUser(begin), "", nullptr);
  uint64_t number = begin;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++number) {
    ASSERT_EQ(iterator->value(), value(number));
    ASSERT_EQ(iterator->value_size(), value(number).size());
  }
  EXPECT_EQ(number, end);
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    ASSERT_EQ(iterator->value(), value(--number));
    ASSERT_EQ(iterator->value_size(), value(number).size());
  }
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  EXPECT_EQ(number, begin);
}

std::string JsonOf(uint64_t number) { return Json(number); }
std::string RandomOf(uint64_t number) { return RandomBytes(number); }

Manifest ManifestOf(const std::string& directory) {
  auto manifest = ReadManifest(PosixFileSystem(), directory);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  return manifest.ok() ? *manifest : Manifest();
}

// Returns the damage that the verifier finds.
std::vector<std::string> DamageIn(const std::string& directory) {
  std::vector<std::string> damage;
  const auto report = VerifyStore(PosixFileSystem(), directory, {});
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return damage;
  for (const StoreFinding& finding : report->findings) {
    if (finding.kind == StoreFinding::Kind::kDamage)
      damage.push_back(fmt::format("{} at {}: {}", finding.file, finding.offset, finding.what));
  }
  return damage;
}

void ExpectSound(const std::string& directory) {
  for (const std::string& damage : DamageIn(directory)) ADD_FAILURE() << damage;
}

TEST(CompressionTest, JsonTakesLessThanHalf) {
  constexpr uint64_t kKeys = 20'000;
  uint64_t sizes[3] = {};
  for (const Compression& how : {Compression(), kLz4, kZstd}) {
    TestStore store(Options(how));
    const uint64_t plain = Fill(store, 0, kKeys, JsonOf);
    ASSERT_TRUE(CompactAll(store).ok());
    ExpectAll(store, kKeys, JsonOf);
    const RangeSize size = store->EstimateSize(kDefaultNamespace, "", "");
    EXPECT_EQ(size.plain_value_bytes > 0, how.on());
    EXPECT_EQ(size.stored_value_bytes < size.plain_value_bytes, how.on());
    store.Close();  // files out of use are gone then
    ExpectSound(store.directory.path());
    const uint64_t stored = FilesOf(store.directory.path(), ".seg");
    sizes[static_cast<size_t>(how.method)] = stored;
    EXPECT_GT(stored, 0u);
    if (how == kZstd) {
      EXPECT_LE(stored * 100, plain * 45);
    }
  }
  EXPECT_LT(sizes[2], sizes[1]);
  EXPECT_LT(sizes[1], sizes[0]);
}

TEST(CompressionTest, RandomBytesTakeWhatTheyTakePlain) {
  uint64_t sizes[3] = {};
  for (const Compression& how : {Compression(), kLz4, kZstd}) {
    TestStore store(Options(how));
    Fill(store, 0, 5000, RandomOf);
    ASSERT_TRUE(CompactAll(store).ok());
    ExpectAll(store, 5000, RandomOf);
    store.Close();
    sizes[static_cast<size_t>(how.method)] = FilesOf(store.directory.path(), ".seg");
  }
  EXPECT_LE(sizes[1] * 1000, sizes[0] * 1005);
  EXPECT_LE(sizes[2] * 1000, sizes[0] * 1005);
}

TEST(CompressionTest, AStoreWithoutItStaysAsItWas) {
  TestStore store(Options({}));
  Fill(store, 0, 3000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  store.Close();
  for (const std::string& path : SegmentsOf(store.directory.path())) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes[bytes.size() - 20], 4) << path;  // the version of the format, which shares keys
  }
  for (const auto& level : ManifestOf(store.directory.path()).levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) EXPECT_TRUE(segment.compressed.empty());
    }
  }
}

TEST(CompressionTest, EveryReadGivesPlainValues) {
  TestStore store(Options(kZstd));
  Fill(store, 0, 4000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  ExpectWalks(store, 0, 4000, JsonOf);
  const auto iterator = store->NewIterator({}, "", "", nullptr);
  iterator->Seek(KeyOfUser(777));
  EXPECT_EQ(iterator->value(), Json(777));
  iterator->Prev();
  EXPECT_EQ(iterator->value(), Json(776));
  iterator->Next();
  EXPECT_EQ(iterator->value(), Json(777));

  const auto sizes = store->NewIterator({.without_value = true}, "", "", nullptr);
  sizes->Seek(KeyOfUser(5));
  EXPECT_EQ(sizes->value_size(), Json(5).size());
  std::string value;
  auto found = store->Get({.without_value = true}, KeyOfUser(6), &value);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->value_size, Json(6).size());
  found = store->Get({.max_value_bytes = 100}, KeyOfUser(6), &value);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->too_large);
  found = store->Get({.max_value_bytes = 1000}, KeyOfUser(6), &value);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->too_large);
  EXPECT_EQ(value, Json(6));

  std::vector<std::string> keys;
  for (uint64_t i = 100; i < 200; ++i) keys.push_back(KeyOfUser(i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<MultiGetResult> results(views.size());
  ASSERT_TRUE(store->MultiGet({}, views, absl::MakeSpan(results)).ok());
  for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(results[i].value, Json(100 + i));
}

TEST(CompressionTest, OneReadFindsACompressedValue) {
  EngineOptions options = Options(kZstd);
  options.block_cache_size = 0;
  TestStore store(options);
  Fill(store, 0, 4000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  const auto disk_reads = [&] {
    return store.Statistic("record_reads") + store.Statistic("table_page_reads") +
           store.Statistic("offset_table_loads");
  };
  const uint64_t before = disk_reads();
  for (uint64_t i = 0; i < 4000; i += 7) EXPECT_EQ(store.Get(KeyOfUser(i)), Json(i));
  EXPECT_EQ(disk_reads() - before, (4000u + 6) / 7);
}

TEST(CompressionTest, NamespacesHaveTheirOwn) {
  TestStore store(Options({}));
  const auto create = [&](std::string name, std::optional<Compression> how) {
    const NamespaceId id = store->Namespaces()->next_id;
    NamespaceDescription space{.id = id, .name = std::move(name)};
    space.options.compression = how;
    WriteBatch batch;
    batch.CreateNamespace(space);
    EXPECT_TRUE(store->Write({}, &batch).ok());
    return id;
  };
  const NamespaceId lz4 = create("lz4", kLz4), zstd = create("zstd", kZstd),
                    usual = create("usual", std::nullopt), random = create("random", kZstd);
  for (const NamespaceId space : {lz4, zstd, usual}) Fill(store, 0, 3000, JsonOf, space);
  Fill(store, 0, 1000, RandomOf, random);
  Fill(store, 0, 1000, JsonOf);
  ASSERT_TRUE(store->Flush().ok());
  for (const NamespaceId space : {kDefaultNamespace, lz4, zstd, usual, random})
    ASSERT_TRUE(store->Compact("", "", space).ok());
  for (int opened = 0; opened < 2; ++opened) {
    ExpectAll(store, 1000, JsonOf);
    for (const NamespaceId space : {lz4, zstd, usual}) ExpectAll(store, 3000, JsonOf, space);
    ExpectAll(store, 1000, RandomOf, random);
    const auto ratio = [&](NamespaceId space) {
      const RangeSize size = store->EstimateSize(space, "", "");
      return size.plain_value_bytes == 0 ? 0.0
                                         : static_cast<double>(size.stored_value_bytes) /
                                               static_cast<double>(size.plain_value_bytes);
    };
    EXPECT_EQ(ratio(kDefaultNamespace), 0);
    EXPECT_EQ(ratio(usual), 0);
    EXPECT_GT(ratio(lz4), ratio(zstd));
    EXPECT_LT(ratio(zstd), 0.4);
    EXPECT_GT(ratio(zstd), 0.1);
    EXPECT_EQ(ratio(random), 1);
    EXPECT_EQ(store->Namespaces()->Find("zstd")->options.compression, kZstd);
    store.Reopen();
  }
  // What is altered takes hold with the next merge.
  for (const std::optional<Compression> how :
       {std::optional(kLz4), std::optional(Compression()), std::optional(kZstd)}) {
    NamespaceDescription space = *store->Namespaces()->Find("zstd");
    space.options.compression = how;
    WriteBatch batch;
    batch.AlterNamespace(space);
    ASSERT_TRUE(store->Write({}, &batch).ok());
    ASSERT_TRUE(store->Compact("", "", zstd).ok());
    ExpectAll(store, 3000, JsonOf, zstd);
    const RangeSize size = store->EstimateSize(zstd, "", "");
    EXPECT_EQ(size.stored_value_bytes < size.plain_value_bytes, how->on());
  }
  store.Close();
  ExpectSound(store.directory.path());
}

TEST(CompressionTest, ValuesKeptApartAreCompressedToo) {
  for (const Compression& how : {kLz4, kZstd}) {
    EngineOptions options = Options(how, 2 << 20);
    options.value_separation_size = 1024;
    TestStore store(options);
    const auto large = [](uint64_t i) {
      if (i % 4 == 3) return RandomBytes(i, 4000);
      std::string text;
      for (uint64_t j = 0; text.size() < 4000; ++j) text += Json(i * 10 + j);
      return text;
    };
    const uint64_t plain = Fill(store, 0, 1200, large);
    ASSERT_TRUE(CompactAll(store).ok());
    ExpectAll(store, 1200, large);
    const RangeSize size = store->EstimateSize(kDefaultNamespace, "", "");
    EXPECT_LT(size.stored_value_bytes * 10, size.plain_value_bytes * 8);
    EXPECT_GT(size.plain_value_bytes, plain / 10 * 9);
    // Overwriting most of them has the rest moved to other files.
    for (int version = 1; version < 4; ++version) {
      Fill(store, 0, 1000, [&](uint64_t i) { return large(i + 7); });
      ASSERT_TRUE(CompactAll(store).ok());
    }
    for (int opened = 0; opened < 2; ++opened) {
      ExpectAll(store, 1000, [&](uint64_t i) { return large(i + 7); });
      ExpectWalks(store, 1000, 1200, large);
      store.Reopen();
    }
    store.Close();
    ExpectSound(store.directory.path());
  }
}

TEST(CompressionTest, DisjointRunsAreCompressedWhenTheyReachTheLastRun) {
  EngineOptions options = Options(kZstd, 256 << 10);
  options.segment_size = 256 << 10;
  TestStore store(options);
  const uint64_t plain = Fill(store, 0, 20'000, JsonOf);
  ASSERT_TRUE(store->Flush().ok());
  // Merges go on behind the flushes, and begin once the burst is over.
  EXPECT_TRUE(testing::Eventually([&] {
    const RangeSize size = store->EstimateSize(kDefaultNamespace, "", "");
    return size.plain_value_bytes > plain / 2 &&
           size.stored_value_bytes * 10 < size.plain_value_bytes * 7;
  }));
  ExpectAll(store, 20'000, JsonOf);
}

TEST(CompressionTest, AMergeCopiesWhatHasItsDictionary) {
  EngineOptions options = Options(kZstd);
  TestStore store(options);
  Fill(store, 0, 6000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  const auto dictionary_of_last = [&] {
    const std::string path = SegmentsOf(store.directory.path()).back();
    const auto file = PosixFileSystem()->OpenForRead(path);
    const uint64_t size = *(*file)->Size();
    const uint64_t number = std::stoull(std::filesystem::path(path).stem().string());
    const auto footer = ReadSegmentFooter(**file, number, size, nullptr);
    EXPECT_TRUE(footer.ok()) << footer.status();
    const auto dictionary = ReadDictionary(**file, *footer);
    EXPECT_TRUE(dictionary.ok()) << dictionary.status();
    return *dictionary == nullptr ? std::string() : std::string((*dictionary)->content());
  };
  const std::string first = dictionary_of_last();
  EXPECT_FALSE(first.empty());
  Fill(store, 6000, 7000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  EXPECT_EQ(dictionary_of_last(), first);
  // Other values in great number bring another one.
  const auto other = [](uint64_t i) {
    return fmt::format(
        "<event time='{}' level='warning'><host>node-{}.cluster.internal</host>"
        "<text>connection to backend lost, retrying in {} ms</text></event>",
        i * 7919, i % 90, i % 1000);
  };
  Fill(store, 0, 30'000, other);
  ASSERT_TRUE(CompactAll(store).ok());
  const std::string last = dictionary_of_last();
  EXPECT_FALSE(last.empty());
  EXPECT_NE(last, first);
  ExpectAll(store, 30'000, other);
}

TEST(CompressionTest, ThePastAndClonesArePlain) {
  EngineOptions options = Options(kZstd);
  options.history.time_ms = 3600'000;
  TestStore store(options);
  Fill(store, 0, 2000, JsonOf);
  const auto old_version = store->GetSnapshot();
  Fill(store, 0, 2000, [](uint64_t i) { return Json(i, 1); });
  const NamespaceId clone = store->Namespaces()->next_id;
  WriteBatch batch;
  batch.CloneNamespace(kDefaultNamespace, {.id = clone, .name = "clone"});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  Fill(store, 0, 2000, [](uint64_t i) { return Json(i, 2); });
  batch.Delete(KeyOfUser(5));
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(CompactAll(store).ok());
  for (uint64_t i = 0; i < 2000; i += 13) {
    ASSERT_EQ(store.Get(KeyOfUser(i), old_version.get()), Json(i, 0));
    ASSERT_EQ(store.Get(KeyOfUser(i)), Json(i, 2));
  }
  ExpectAll(
      store, 2000, [](uint64_t i) { return Json(i, 1); }, clone);
  ExpectWalks(
      store, 0, 2000, [](uint64_t i) { return Json(i, 1); }, clone);

  const auto removed = store->FindRemoved(
      {.space = kDefaultNamespace, .lower = KeyOfUser(5), .upper = KeyOfUser(6)});
  ASSERT_TRUE(removed.ok()) << removed.status();
  ASSERT_EQ(removed->keys.size(), 1u);
  EXPECT_EQ(removed->keys[0].value, Json(5, 2));
  const auto history = store->HistoryOf(kDefaultNamespace, KeyOfUser(7));
  ASSERT_TRUE(history.ok()) << history.status();
  for (const KeyEvent& event : history->events) {
    if (event.has_value) {
      EXPECT_GE(event.value_size, 200u);
    }
  }
  EXPECT_EQ(history->events.size(), 3u);
  const auto differences =
      store->NewDifferenceIterator({old_version}, {store->GetSnapshot(), clone}, "", "");
  ASSERT_TRUE(differences.ok()) << differences.status();
  uint64_t differ = 0;
  while ((*differences)->Next()) ++differ;
  EXPECT_EQ(differ, 2000u);
}

class DropsOdd final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord& record) const override {
    const uint64_t number = std::stoull(std::string(record.key.substr(5)));
    EXPECT_EQ(record.value, Json(number));
    return number % 2 == 1;
  }
};

TEST(CompressionTest, FiltersSeePlainValues) {
  EngineOptions options = Options(kZstd);
  options.compaction_filter = std::make_shared<DropsOdd>();
  TestStore store(options);
  Fill(store, 0, 2000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  ASSERT_TRUE(CompactAll(store).ok());  // of compressed values
  for (uint64_t i = 0; i < 2000; ++i)
    ASSERT_EQ(store.Get(KeyOfUser(i)), i % 2 == 1 ? "(missing)" : Json(i));
}

TEST(CompressionTest, SwitchedOffItIsUndoneByMerges) {
  TestStore store(Options(kZstd));
  Fill(store, 0, 3000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  store.Close();
  const uint64_t compressed = FilesOf(store.directory.path(), ".seg");
  store.options.compression = {};
  store.Open();
  ExpectAll(store, 3000, JsonOf);
  ASSERT_TRUE(CompactAll(store).ok());
  ExpectAll(store, 3000, JsonOf);
  store.Close();
  EXPECT_GT(FilesOf(store.directory.path(), ".seg"), 2 * compressed);
  for (const auto& level : ManifestOf(store.directory.path()).levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) EXPECT_TRUE(segment.compressed.empty());
    }
  }
}

// --- Damage --------------------------------------------------------------------------------------

class DamagedDictionaryTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kKeys = 3000;

  void SetUp() override {
    Fill(store_, 0, kKeys, JsonOf);
    ASSERT_TRUE(CompactAll(store_).ok());
    store_.Close();
    path_ = SegmentsOf(store_.directory.path()).front();
    const uint64_t number = std::stoull(std::filesystem::path(path_).stem().string());
    std::ifstream in(path_, std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(in), {});
    const auto file = PosixFileSystem()->OpenForRead(path_);
    const auto footer = ReadSegmentFooter(**file, number, good_.size(), nullptr);
    ASSERT_TRUE(footer.ok()) << footer.status();
    ASSERT_GT(footer->dictionary_size, 0u);
    begin_ = footer->dictionary_offset();
    end_ = begin_ + footer->dictionary_size;
  }

  static EngineOptions WithoutCache() {
    EngineOptions options = Options(kZstd);
    options.block_cache_size = 0;
    return options;
  }

  void Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  // Returns how many of the keys can't be read; the others have their values.
  uint64_t CountDamaged() {
    uint64_t damaged = 0;
    for (uint64_t i = 0; i < kKeys; i += i < 5 ? 1 : 97) {
      std::string value;
      const auto found = store_->Get({}, KeyOfUser(i), &value);
      if (found.ok()) {
        EXPECT_EQ(value, Json(i));
        continue;
      }
      ++damaged;
      EXPECT_TRUE(absl::IsDataLoss(found.status())) << found.status();
      EXPECT_THAT(std::string(found.status().message()), HasSubstr(path_));
    }
    return damaged;
  }

  void ExpectKeysWithoutValues() {
    const auto keys = store_->NewIterator({.without_value = true}, "", "", nullptr);
    uint64_t count = 0;
    for (keys->SeekToFirst(); keys->Valid(); keys->Next()) ++count;
    EXPECT_EQ(count, kKeys) << "keys need no dictionary";
    EXPECT_TRUE(keys->status().ok()) << keys->status();
    const auto values = store_->NewIterator({}, "", "", nullptr);
    values->SeekToFirst();
    EXPECT_FALSE(values->Valid());
    EXPECT_TRUE(absl::IsDataLoss(values->status())) << values->status();
  }

  TestStore store_{WithoutCache()};
  std::string path_;
  std::string good_;
  uint64_t begin_ = 0, end_ = 0;  // of the dictionary
};

TEST_F(DamagedDictionaryTest, EveryKindOfByteIsFoundAndNamed) {
  std::mt19937_64 random(3);
  // A record's checksum, kind, sizes, key and value; the same of the dictionary.
  std::vector<uint64_t> places = {0,      4,          5,          20,          60,
                                  begin_, begin_ + 4, begin_ + 8, begin_ + 16, end_ - 1};
  for (int i = 0; i < 10; ++i) places.push_back(begin_ + random() % (end_ - begin_));
  for (const uint64_t place : places) {
    SCOPED_TRACE(place);
    std::string bad = good_;
    bad[place] = static_cast<char>(bad[place] ^ 0x10);
    Write(bad);
    EXPECT_FALSE(DamageIn(store_.directory.path()).empty());
    store_.Open();
    EXPECT_GT(CountDamaged(), 0u);
    if (place >= begin_) ExpectKeysWithoutValues();
    store_.Close();
  }
  Write(good_);
  store_.Open();
  ExpectAll(store_, kKeys, JsonOf);
}

TEST_F(DamagedDictionaryTest, MergesGoOnAroundTheDamage) {
  std::string bad = good_;
  bad[begin_ + kDictionaryHeaderSize] =
      static_cast<char>(bad[begin_ + kDictionaryHeaderSize] ^ 0x10);
  Write(bad);
  store_.Open();
  // So many bytes that merges want the damaged segment along, which is all of the last run.
  constexpr int kRuns = 12;
  constexpr uint64_t kWritten = kKeys / 3;
  for (int run = 1; run <= kRuns; ++run) {
    Fill(store_, 0, kWritten, [run](uint64_t i) { return Json(i, run); });
    const absl::Status flushed = store_->Flush();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }
  EXPECT_TRUE(testing::Eventually([&] {
    return store_.Statistic("compactions_damage") > 0 && store_.Statistic("runs") < kRuns;
  })) << store_.Statistic("runs");
  EXPECT_LE(store_.Statistic("failed_compactions"), 1u) << "it fails as long as it knows of none";
  ExpectAll(store_, kWritten, [](uint64_t i) { return Json(i, kRuns); });
  EXPECT_TRUE(absl::IsDataLoss(store_->Compact("", ""))) << "who asks is told";
}

}  // namespace
}  // namespace varve
