// Every format that Varve ever wrote is read. unit-tests/kept_stores has a store of each, as the
// death of its server left it: format-N.tar.xz is one whose manifest has version N. A new format
// gets a store of its own there, and those that are there stay as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/version/manifest.h"
#include "fmt/format.h"
#include "tools/dump.h"
#include "tools/verify.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/namespace_status.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::TempDir;

void Unpack(const std::string& format, const std::string& directory) {
  const std::string archive =
      std::string(VARVE_SOURCE_DIR) + "/unit-tests/kept_stores/format-" + format + ".tar.xz";
  const std::string command =
      "tar -xJf '" + archive + "' -C '" + directory + "' --strip-components=1";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

struct KeptStore {
  int format;
  bool has_expiry_values_and_clone;
};

class KeptStoreTest : public ::testing::TestWithParam<KeptStore> {
 protected:
  void SetUp() override { Unpack(std::to_string(GetParam().format), dir_.path()); }
  void Open(bool finalize_upgrade) {
    store_.reset();
    EngineOptions options;
    options.create_if_missing = false;
    options.finalize_upgrade = finalize_upgrade;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  std::string Get(std::string_view key, NamespaceId space = kDefaultNamespace) {
    std::string value;
    const absl::StatusOr<ReadResult> read = store_->Get({.space = space}, key, &value);
    if (!read.ok()) return read.status().ToString();
    return read->found ? value : "(missing)";
  }
  void ExpectAll() {
    EXPECT_EQ(Get("key:1"), "value:1");
    EXPECT_EQ(Get("key:400"), "value:400");
    EXPECT_EQ(Get("key:7"), "(missing)") << "deleted";
    EXPECT_EQ(Get("key:20"), "(missing)") << "deleted with a range";
    EXPECT_EQ(Get("key:8"), "changed") << "in the log";
    EXPECT_EQ(Get("b"), "2") << "the second of a batch";
    ExpectSize(390);
    const NamespaceList spaces = store_->Namespaces().value();
    EXPECT_NE(spaces.Find("users"), nullptr);
    if (!GetParam().has_expiry_values_and_clone) return;
    EXPECT_EQ(Get("session"), "y");
    EXPECT_EQ(Get("large"), std::string(3000, 'L'));
    ASSERT_NE(spaces.Find("branch"), nullptr);
    EXPECT_EQ(Get("key:8", spaces.Find("branch")->id), "changed");
    EXPECT_EQ(Get("after", spaces.Find("branch")->id), "(missing)") << "written behind the fork";
    EXPECT_EQ(Get("after"), "clone");
  }
  void ExpectSize(uint64_t keys) {
    const uint64_t extra = GetParam().has_expiry_values_and_clone ? 4 : 0;
    EXPECT_EQ(store_->Count({}, "", "")->keys, keys + extra);
  }
  // Returns how many operations of the log have a cause of their own.
  size_t CausesInTheLog() {
    size_t causes = 0;
    (void)DumpLog(PosixFileSystem(), dir_.path(), [&](std::string_view line) {
      for (const std::string_view cause : {", for its expiry", ", for its metadata", ", to make"})
        causes += line.find(cause) != std::string_view::npos ? 1 : 0;
    }).ok();
    return causes;
  }
  uint32_t VersionOnDisk() {
    return DecodeFixed32(
        EncodeManifest(ReadManifest(PosixFileSystem(), dir_.path()).value()).data() + 8);
  }

  TempDir dir_;
  std::unique_ptr<StorageEngine> store_;
};

TEST_P(KeptStoreTest, IsWholeAndStaysInItsFormatUntilItsUpgradeIsFinalized) {
  const absl::StatusOr<VerifyReport> report = VerifyStore(PosixFileSystem(), dir_.path(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged_places, 0u);

  Open(/*finalize_upgrade=*/false);
  ExpectAll();
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(store_->Compact("", "").ok());
  ExpectAll();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_LT(VersionOnDisk(), 5u) << "an earlier program can go on with it";

  Open(/*finalize_upgrade=*/true);
  ExpectAll();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_EQ(VersionOnDisk(), 7u);
  Open(/*finalize_upgrade=*/false);
  ExpectAll();
}

TEST_P(KeptStoreTest, ItsLogHasNoCausesUntilItsUpgradeIsFinalized) {
  for (const bool finalize : {false, true}) {
    Open(finalize);
    WriteBatch batch;
    batch.Put("small", "value", {.expiry_ms = kNoExpiry, .cause = WriteCause::kExpiryChange});
    batch.Put("great", std::string(3000, 'g'), {.cause = WriteCause::kMetadataChange});
    batch.Delete("small", kDefaultNamespace, WriteCause::kEvicted);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    ASSERT_TRUE(store_->Sync().ok());
    EXPECT_EQ(CausesInTheLog(), finalize ? 3u : 0u);
    store_.reset();  // the next opening replays the log
    Open(finalize);
    EXPECT_EQ(Get("great"), std::string(3000, 'g'));
    EXPECT_EQ(Get("small"), "(missing)");
    ExpectSize(391);
    ASSERT_TRUE(store_->Flush().ok());
    EXPECT_EQ(Get("great"), std::string(3000, 'g'));
    ASSERT_TRUE(store_->Close().ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, KeptStoreTest,
                         ::testing::Values(KeptStore{2, false}, KeptStore{4, true}),
                         [](const auto& store) {
                           return "Format" + std::to_string(store.param.format);
                         });

// A store with a past: old versions, changes that are retained and the place of a feed behind some
// of them, a namespace that was dropped, metadata, and an ingest; the log has the last writes
// alone.
class KeptHistoryTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCentury = uint64_t{36'500} * 86'400'000;

  void SetUp() override { Unpack("5", dir_.path()); }
  void Open() {
    store_.reset();
    EngineOptions options;
    options.create_if_missing = false;
    options.history.time_ms = kCentury;
    options.changes.bytes = 1u << 20;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Returns "value|metadata", or "(missing)".
  std::string Get(std::string_view key, const Snapshot* snapshot = nullptr,
                  NamespaceId space = kDefaultNamespace) {
    std::string value;
    const absl::StatusOr<ReadResult> read =
        store_->Get({.snapshot = snapshot, .space = space, .with_metadata = true}, key, &value);
    if (!read.ok()) return read.status().ToString();
    return read->found ? value + "|" + std::string(read->MetadataView()) : "(missing)";
  }
  void ExpectPresentAndPast() {
    EXPECT_EQ(Get("key:1"), "value:1|");
    EXPECT_EQ(Get("key:9"), "in the log|");
    EXPECT_EQ(Get("image"), "bytes|image/jpeg");
    EXPECT_EQ(Get("large"), std::string(3000, 'L') + "|big");
    EXPECT_EQ(Get("session"), "y|");
    EXPECT_EQ(Get("ingested:2"), "two|");
    EXPECT_EQ(store_->Count({}, "", "")->keys, 52u);
    const KeyHistory history = store_->HistoryOf(kDefaultNamespace, "key:8").value();
    ASSERT_EQ(history.events.size(), 2u);
    const auto then = store_->SnapshotAt(kDefaultNamespace, history.events[0].version - 1).value();
    EXPECT_EQ(Get("key:8", then.get()), "value:8|");
    EXPECT_EQ(Get("key:7", then.get()), "value:7|");
    EXPECT_EQ(Get("image", then.get()), "bytes|image/png");
    EXPECT_EQ(Get("ingested:2", then.get()), "(missing)");
    EXPECT_GT(history.events[1].instant_ms, 0u);
    std::string removed;
    const RemovedKeys found = store_->FindRemoved({}).value();
    for (const RemovedKey& key : found.keys) removed += key.key + "=" + key.value + " ";
    EXPECT_EQ(removed, "key:10=value:10 key:20=value:20 key:7=value:7 ");
  }
  // Returns what happened behind the place of the feed.
  std::string ChangesBehindTheFeed() {
    const std::vector<FeedPlace> feeds = store_->Feeds();
    if (feeds.size() != 1 || feeds.front().lost) return "no feed";
    ChangeFilter filter;
    filter.space = std::nullopt;
    const auto changes = store_->NewChangeIterator(feeds.front().position, filter);
    if (!changes.ok()) return changes.status().ToString();
    std::string told;
    for (absl::StatusOr<bool> more = (*changes)->Next(); more.ok() && *more;
         more = (*changes)->Next()) {
      for (const ChangeOperation& operation : (*changes)->change().operations) {
        told += std::to_string(static_cast<int>(operation.kind)) + ":" + operation.name + ":" +
                operation.key + " ";
      }
    }
    return told;
  }

  TempDir dir_;
  std::unique_ptr<StorageEngine> store_;
};

TEST_F(KeptHistoryTest, ThePastTheChangesAndADroppedNamespaceAreThere) {
  const absl::StatusOr<VerifyReport> report = VerifyStore(PosixFileSystem(), dir_.path(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged_places, 0u);
  using Kind = ChangeOperation::Kind;
  std::string wanted;
  const auto tell = [&](Kind kind, const std::string& name, const std::string& key) {
    wanted += std::to_string(static_cast<int>(kind)) + ":" + name + ":" + key + " ";
  };
  tell(Kind::kCreate, "users", "");
  tell(Kind::kSet, "users", "user:1");
  tell(Kind::kSet, "users", "user:2");
  tell(Kind::kSet, "0", "key:8");
  tell(Kind::kDelete, "0", "key:7");
  tell(Kind::kMeta, "0", "image");
  tell(Kind::kDeleteRange, "0", "key:20");
  tell(Kind::kDrop, "users", "");
  tell(Kind::kIngest, "0", "ingested:1");
  tell(Kind::kSet, "0", "key:9");
  tell(Kind::kDelete, "0", "key:10");
  tell(Kind::kMeta, "0", "large");
  for (int i = 0; i < 3; ++i) {
    Open();
    ExpectPresentAndPast();
    EXPECT_EQ(ChangesBehindTheFeed(), wanted);
    if (i == 0) {
      ASSERT_TRUE(store_->Flush().ok());
      ASSERT_TRUE(store_->Compact("", "").ok());
      ExpectPresentAndPast();
    }
    ASSERT_TRUE(store_->Close().ok());
  }
  Open();
  const std::vector<DroppedNamespace> dropped = store_->DroppedNamespaces().value();
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].space.name, "users");
  WriteBatch batch;
  batch.CloneNamespaceAt(dropped[0].space.id, dropped[0].dropped_at - 1, dropped[0].space);
  ASSERT_TRUE(store_->Write({}, &batch).ok());
  EXPECT_EQ(Get("user:2", nullptr, dropped[0].space.id), "Bob|");
}

// A store whose segments share keys, of two namespaces, one of them a clone's; the log has the last
// write alone.
TEST(KeptSharedKeysTest, KeysAreReadAndMerged) {
  const TempDir dir;
  Unpack("7", dir.path());
  const absl::StatusOr<VerifyReport> report = VerifyStore(PosixFileSystem(), dir.path(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged_places, 0u);
  EngineOptions options;
  options.create_if_missing = false;
  auto store = StorageEngine::Open(dir.path(), options);
  ASSERT_TRUE(store.ok()) << store.status();
  const NamespaceId branch = (*store)->Namespaces()->Find("branch")->id;
  const auto get = [&](int i, NamespaceId space) {
    std::string found;
    const auto read = (*store)->Get({.space = space}, fmt::format("user:{:09}", i), &found);
    return !read.ok() ? read.status().ToString() : read->found ? found : "(missing)";
  };
  for (int merged = 0; merged < 2; ++merged) {
    EXPECT_EQ(get(0, kDefaultNamespace), "in the log");
    EXPECT_EQ(get(0, branch), "value 0");
    for (int i = 1; i < 400; ++i) {
      ASSERT_EQ(get(i, branch), fmt::format("value {}", i));
      ASSERT_EQ(get(i, kDefaultNamespace), i % 7 == 0 ? "(missing)" : fmt::format("value {}", i));
    }
    ASSERT_TRUE((*store)->Flush().ok());
    for (const NamespaceId space : {kDefaultNamespace, branch})
      ASSERT_TRUE((*store)->Compact("", "", space).ok());
  }
  ASSERT_TRUE((*store)->Close().ok());
}

// A store with compressed values: of zstd with a dictionary in its own database, of LZ4 and plain
// in two namespaces, and values that are kept apart; the log has the last write alone.
TEST(KeptCompressedTest, ValuesAreReadAndMerged) {
  const TempDir dir;
  Unpack("5-compressed", dir.path());
  EngineOptions options;
  options.create_if_missing = false;
  auto store = StorageEngine::Open(dir.path(), options);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto value = [](int i) {
    return fmt::format(
        R"({{"id":{},"name":"customer number {}","token":"{:08x}","country":"Germany",)"
        R"("tags":["regular","newsletter"],"street":"Long Street {}"}})",
        i, i, static_cast<uint32_t>(i) * 2654435761u, i % 50);
  };
  const auto get = [&](const std::string& key, NamespaceId space) {
    std::string found;
    const auto read = (*store)->Get({.space = space}, key, &found);
    return read.ok() ? found : read.status().ToString();
  };
  const NamespaceId lz4 = (*store)->Namespaces()->Find("lz4")->id;
  const NamespaceId none = (*store)->Namespaces()->Find("none")->id;
  const RangeSize size = (*store)->EstimateSize(kDefaultNamespace, "", "");
  EXPECT_LT(size.stored_value_bytes * 2, size.plain_value_bytes);
  for (int merged = 0; merged < 2; ++merged) {
    EXPECT_EQ(get("key:0", kDefaultNamespace), "in the log");
    for (int i = 1; i < 1500; ++i)
      ASSERT_EQ(get(fmt::format("key:{}", i), kDefaultNamespace), value(i));
    for (int i = 0; i < 60; ++i)
      ASSERT_EQ(get(fmt::format("key:{}", i), lz4), value(i) + std::string(60, 'x'));
    for (int i = 0; i < 20; ++i) ASSERT_EQ(get(fmt::format("key:{}", i), none), value(i));
    for (int i = 0; i < 4; ++i) {
      std::string large;
      for (int j = 0; j < 20; ++j) large += value(i * 20 + j);
      ASSERT_EQ(get(fmt::format("large:{}", i), kDefaultNamespace), large);
    }
    ASSERT_TRUE((*store)->Flush().ok());
    for (const NamespaceId space : {kDefaultNamespace, lz4, none})
      ASSERT_TRUE((*store)->Compact("", "", space).ok());
  }
  ASSERT_TRUE((*store)->Close().ok());
}

// A store with namespaces whose keys make room, and keys that did; the log has the last writes
// alone. Once no namespace has such a rule, earlier programs can read it.
TEST(KeptEvictionTest, RulesAndWhatTheyLeftAreThere) {
  const TempDir dir;
  Unpack("6", dir.path());
  const absl::StatusOr<VerifyReport> report = VerifyStore(PosixFileSystem(), dir.path(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged_places, 0u);
  const auto version = [&] {
    return DecodeFixed32(
        EncodeManifest(ReadManifest(PosixFileSystem(), dir.path()).value()).data() + 8);
  };
  EngineOptions options;
  options.create_if_missing = false;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(version(), 6u);
    auto store = StorageEngine::Open(dir.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    const NamespaceList spaces = (*store)->Namespaces().value();
    const NamespaceDescription* const cache = spaces.Find("cache");
    const NamespaceDescription* const sessions = spaces.Find("sessions");
    ASSERT_TRUE(cache != nullptr && sessions != nullptr);
    EXPECT_EQ(cache->options.eviction, (EvictionRule{EvictionOrder::kLru}));
    EXPECT_EQ(cache->options.max_bytes, 3000u);
    EXPECT_EQ(sessions->options.eviction,
              (EvictionRule{EvictionOrder::kTtl, /*volatile_only=*/true}));
    EXPECT_EQ(sessions->options.max_keys, 20u);
    EXPECT_EQ((*store)->Count({.space = cache->id}, "", "")->keys, 31u);
    EXPECT_EQ((*store)->Count({.space = sessions->id}, "", "")->keys, 18u);
    EXPECT_EQ((*store)->Count({}, "", "")->keys, 59u);
    std::string value;
    EXPECT_FALSE((*store)->Get({.space = cache->id}, "c:30", &value)->found) << "evicted";
    EXPECT_TRUE((*store)->Get({.space = cache->id}, "c:31", &value)->found);
    EXPECT_TRUE((*store)->Get({.space = sessions->id}, "stays", &value)->found);
    EXPECT_EQ((*store)->Get({.space = sessions->id}, "s:25", &value)->expiry_ms, 3'999'999'975'000);
    EXPECT_TRUE((*store)->Get({}, "key:9", &value)->found);
    EXPECT_EQ(value, "in the log");
    ASSERT_TRUE((*store)->Flush().ok());
    ASSERT_TRUE((*store)->Compact("", "").ok());
    if (i == 1) {
      WriteBatch batch;
      batch.DropNamespace(cache->id);
      batch.DropNamespace(sessions->id);
      ASSERT_TRUE((*store)->Write({}, &batch).ok());
      ASSERT_TRUE((*store)->Flush().ok());
    }
    ASSERT_TRUE((*store)->Close().ok());
  }
  EXPECT_EQ(version(), 5u);
}

// A store of each format with a history takes groups of keys, and with them version 7 of the
// manifest; one whose upgrade is not finalized has no place for them.
class KeptGroupsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { Unpack(GetParam(), dir_.path()); }
  absl::StatusOr<std::unique_ptr<StorageEngine>> Open(bool finalize_upgrade = false) {
    EngineOptions options;
    options.create_if_missing = false;
    options.finalize_upgrade = finalize_upgrade;
    return StorageEngine::Open(dir_.path(), options);
  }
  static absl::Status Declare(Store* store) {
    WriteBatch batch;
    batch.CreateNamespace({.id = store->Namespaces()->next_id,
                           .name = "grouped",
                           .options = {.grouping = KeyGrouping::By(':')}});
    return store->Write({}, &batch).status();
  }
  static absl::Status PutBoth(Store* store, NamespaceId space, const char* one, const char* two) {
    WriteBatch batch;
    batch.Put(one, "v", space);
    batch.Put(two, "v", space);
    return store->Write({}, &batch).status();
  }

  TempDir dir_;
};

TEST_P(KeptGroupsTest, GroupsAreDeclaredAndKept) {
  const bool is_early = std::string_view(GetParam()) < "5";
  if (is_early) {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    const absl::Status refused = Declare(store->get());
    EXPECT_NE(std::string(refused.message()).find("finalize its upgrade"), std::string::npos)
        << refused;
    EXPECT_EQ((*store)->Namespaces()->Find("grouped"), nullptr);
  }
  {
    auto store = Open(/*finalize_upgrade=*/is_early);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_EQ(Declare(store->get()), absl::OkStatus());
    ASSERT_TRUE((*store)->Flush().ok());
    ASSERT_TRUE((*store)->Close().ok());
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(DecodeFixed32(
                  EncodeManifest(ReadManifest(PosixFileSystem(), dir_.path()).value()).data() + 8),
              7u);
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    const NamespaceList spaces = (*store)->Namespaces().value();
    ASSERT_NE(spaces.Find("grouped"), nullptr);
    const NamespaceId id = spaces.Find("grouped")->id;
    EXPECT_EQ((*store)->GroupsOf(id), KeyGrouping::By(':'));
    EXPECT_EQ((*store)->GroupsOf(kDefaultNamespace), std::nullopt);
    EXPECT_TRUE(IsCrossGroup(PutBoth(store->get(), id, "a:1", "b:1")));
    EXPECT_EQ(PutBoth(store->get(), id, "a:1", "a:2"), absl::OkStatus());
    EXPECT_EQ(PutBoth(store->get(), kDefaultNamespace, "a:1", "b:1"), absl::OkStatus());
    ASSERT_TRUE((*store)->Compact("", "", id).ok());
    ASSERT_TRUE((*store)->Close().ok());
  }
  const absl::StatusOr<VerifyReport> report = VerifyStore(PosixFileSystem(), dir_.path(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged_places, 0u);
}

INSTANTIATE_TEST_SUITE_P(Formats, KeptGroupsTest,
                         ::testing::Values("2", "4", "5", "5-compressed", "6", "7"),
                         [](const auto& format) {
                           std::string name = "Format" + std::string(format.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace varve
