// Metadata of values, and scans of what is newer than a version.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/test_store.h"
#include "varve/transaction.h"

namespace varve {
namespace {

using testing::TestStore;

struct MetadataEntry {
  std::string value;
  std::string metadata;
  SequenceNumber version = kNoSequence;
};
using MetadataModel = std::map<std::string, MetadataEntry>;
using MetadataModels = std::map<NamespaceId, MetadataModel>;

std::string KeyOfEntry(int i) { return fmt::format("key{:05}", i); }

std::string EntryText(std::string_view key, std::string_view value, std::string_view metadata,
                      SequenceNumber version) {
  return fmt::format("{}={}+{}@{} ", key, value, metadata, version);
}

std::string EntryText(const MetadataModel& model, SequenceNumber newer_than, bool reverse) {
  std::string text;
  for (const auto& [key, entry] : model) {
    if (entry.version <= newer_than) continue;
    const std::string one = EntryText(key, entry.value, entry.metadata, entry.version);
    text = reverse ? one + text : text + one;
  }
  return text;
}

// --- The model -----------------------------------------------------------------------------------

// Values with metadata in namespaces and their clones, with all that happens below them.
class MetadataModelTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  static EngineOptions Options(uint64_t seed) {
    EngineOptions options = testing::TestEngineOptions();
    options.segment_size = 48 << 10;
    options.runs_per_level = 3;
    options.sync = Durability::kNone;
    if (seed % 2 == 0) options.write_buffer_size = 64 << 10;
    if (seed % 3 == 0) options.block_cache_size = 0;
    if (seed % 4 == 0) options.value_separation_size = 0;
    return options;
  }

  std::string RandomKey() { return KeyOfEntry(static_cast<int>(random_() % 60)); }
  NamespaceId Any() {
    return std::next(models_.begin(), static_cast<ptrdiff_t>(random_() % models_.size()))->first;
  }
  std::string Bytes(size_t most) {
    return std::string(random_() % most, static_cast<char>('a' + random_() % 26));
  }

  void Write() {
    WriteBatch batch;
    std::vector<std::pair<NamespaceId, std::string>> puts;  // by operation; an empty key: none
    for (uint64_t writes = 1 + random_() % 6; writes > 0; --writes) {
      const NamespaceId space = Any();
      const std::string key = RandomKey();
      if (random_() % 5 == 0) {
        batch.Delete(key, space);
        models_[space].erase(key);
        puts.emplace_back(space, "");
        continue;
      }
      MetadataEntry entry{.value = Bytes(random_() % 2 == 0 ? 200 : 5000)};
      if (random_() % 3 != 0) entry.metadata = Bytes(random_() % 8 == 0 ? 3000 : 40);
      batch.Put(key, entry.value, {.metadata = entry.metadata}, space);
      models_[space][key] = entry;
      puts.emplace_back(space, key);
    }
    const absl::StatusOr<CommitResult> written = store_->Write({}, &batch);
    ASSERT_TRUE(written.ok()) << written.status();
    versions_.push_back(written->sequence);
    for (size_t i = 0; i < puts.size(); ++i) {
      const auto& [space, key] = puts[i];
      const auto entry = models_[space].find(key);
      if (entry != models_[space].end())
        entry->second.version = written->sequence - puts.size() + 1 + i;
    }
  }

  void DeleteRange() {
    std::string begin = RandomKey(), end = RandomKey();
    if (end < begin) std::swap(begin, end);
    const NamespaceId space = Any();
    WriteBatch batch;
    batch.DeleteRange(begin, end, space);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    models_[space].erase(models_[space].lower_bound(begin), models_[space].lower_bound(end));
  }

  void CloneOrDrop() {
    WriteBatch batch;
    const NamespaceId space = Any();
    if (models_.size() > 4 && space != 0) {
      batch.DropNamespace(space);
      models_.erase(space);
    } else {
      const NamespaceId id = store_->Namespaces()->next_id;
      batch.CloneNamespace(space, {.id = id, .name = fmt::format("clone{}", id)});
      models_[id] = models_[space];
    }
    ASSERT_TRUE(store_->Write({}, &batch).ok());
  }

  std::string Scan(NamespaceId space, SequenceNumber newer_than, const Snapshot* snapshot,
                   bool reverse) {
    std::string text;
    const auto iterator = store_->NewIterator(
        {.snapshot = snapshot, .space = space, .newer_than = newer_than}, {}, {}, nullptr);
    for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
         reverse ? iterator->Prev() : iterator->Next()) {
      text +=
          EntryText(iterator->key(), iterator->value(), iterator->metadata(), iterator->version());
    }
    return iterator->status().ok() ? text : std::string(iterator->status().message());
  }

  void CheckScans(const MetadataModels& models, const Snapshot* snapshot) {
    const SequenceNumber since = versions_.empty() ? 0 : versions_[random_() % versions_.size()];
    for (const auto& [space, model] : models) {
      SCOPED_TRACE(fmt::format("namespace {} since {}", space, since));
      for (const bool reverse : {false, true}) {
        ASSERT_EQ(Scan(space, kNoSequence, snapshot, reverse),
                  EntryText(model, kNoSequence, reverse));
        ASSERT_EQ(Scan(space, since, snapshot, reverse), EntryText(model, since, reverse));
      }
    }
  }

  void CheckLookups() {
    const NamespaceId space = Any();
    std::vector<std::string> keys;
    for (int i = 0; i < 12; ++i) keys.push_back(RandomKey());
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<MultiGetResult> results(keys.size());
    const ReadOptions options{.space = space, .with_metadata = true};
    ASSERT_TRUE(store_->MultiGet(options, views, absl::MakeSpan(results)).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto entry = models_[space].find(keys[i]);
      const std::string metadata = entry == models_[space].end() ? "" : entry->second.metadata;
      ReadOptions alone = options;
      alone.without_value = random_() % 2 == 0;
      std::string value;
      const absl::StatusOr<ReadResult> read = store_->Get(alone, keys[i], &value);
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(read->found, entry != models_[space].end());
      ASSERT_EQ(read->MetadataView(), metadata);
      ASSERT_EQ(results[i].result.MetadataView(), metadata);
      ASSERT_EQ(read->metadata == nullptr, metadata.empty());
      const absl::StatusOr<ReadResult> plain = store_->Get({.space = space}, keys[i], &value);
      ASSERT_TRUE(plain.ok() && plain->metadata == nullptr);
    }
  }

  void CheckCount() {
    const NamespaceId space = Any();
    uint64_t bytes = 0;
    for (const auto& [key, entry] : models_[space])
      bytes += key.size() + entry.value.size() + entry.metadata.size();
    for (const std::string_view upper : {"", "z"}) {
      const absl::StatusOr<CountResult> count = store_->Count({.space = space}, {}, upper);
      ASSERT_TRUE(count.ok()) << count.status();
      ASSERT_EQ(count->keys, models_[space].size());
      ASSERT_EQ(count->bytes, bytes);
    }
  }

  void Step() {
    const uint64_t dice = random_() % 100;
    if (dice < 55) {
      Write();
    } else if (dice < 58) {
      DeleteRange();
    } else if (dice < 62) {
      CloneOrDrop();
    } else if (dice < 66) {
      ASSERT_TRUE(store_->Flush().ok());
    } else if (dice < 69) {
      ASSERT_TRUE(store_->Compact({}, {}, Any()).ok());
    } else if (dice < 71) {
      snapshots_.clear();
      store_.Reopen();
    } else if (dice < 74) {
      if (snapshots_.size() > 2) snapshots_.erase(snapshots_.begin());
      snapshots_.emplace_back(store_->GetSnapshot(), models_);
    } else if (dice < 80 && !snapshots_.empty()) {
      const auto& [snapshot, models] = snapshots_[random_() % snapshots_.size()];
      CheckScans(models, snapshot.get());
    } else if (dice < 86) {
      CheckScans(models_, nullptr);
    } else if (dice < 94) {
      CheckLookups();
    } else {
      CheckCount();
    }
  }

  TestStore store_{Options(GetParam())};
  std::mt19937_64 random_{GetParam()};
  MetadataModels models_ = {{0, {}}};
  std::vector<SequenceNumber> versions_;
  std::vector<std::pair<std::shared_ptr<const Snapshot>, MetadataModels>>
      snapshots_;  // before the store
};

TEST_P(MetadataModelTest, AgreesWithMaps) {
  for (int step = 0; step < 500; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    ASSERT_NO_FATAL_FAILURE(Step());
  }
  ASSERT_NO_FATAL_FAILURE(CheckScans(models_, nullptr));
}

INSTANTIATE_TEST_SUITE_P(Seeds, MetadataModelTest, ::testing::Range<uint64_t>(1, 9));

// --- Single cases --------------------------------------------------------------------------------

std::string MetadataOf(StoreReads& store, std::string_view key) {
  std::string value;
  const absl::StatusOr<ReadResult> read = store.Get({.with_metadata = true}, key, &value);
  if (!read.ok()) return read.status().ToString();
  return read->found ? std::string(read->MetadataView()) : "(missing)";
}

TEST(MetadataTest, EachByteAndTheLargestSizeComeBack) {
  TestStore store;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  const std::string largest(kMaxMetadataSize, '\xfe');
  WriteBatch batch;
  batch.Put("bytes", "v", {.metadata = bytes});
  batch.Put("largest", std::string(100'000, 'v'), {.metadata = largest});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  batch.Put("refused", "v", {.metadata = largest + "x"});
  EXPECT_TRUE(absl::IsInvalidArgument(store->Write({}, &batch).status()));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(MetadataOf(*store, "bytes"), bytes);
    EXPECT_EQ(MetadataOf(*store, "largest"), largest);
    EXPECT_EQ(MetadataOf(*store, "refused"), "(missing)");
    if (round == 0) ASSERT_TRUE(store->Flush().ok());
    store.Reopen();
  }
}

TEST(MetadataTest, ValuesThatMoveToANewFileKeepIt) {
  EngineOptions options = testing::TestEngineOptions();
  options.write_buffer_size = 256 << 10;
  TestStore store(options);
  const auto write = [&](int key, int round) {
    WriteBatch batch;
    batch.Put(KeyOfEntry(key), std::string(4000, static_cast<char>('a' + round)),
              {.metadata = fmt::format("{}/{}", key, round)});
    ASSERT_TRUE(store->Write({}, &batch).ok());
  };
  constexpr int kKeys = 400;
  std::vector<int> rounds(kKeys, 0);
  for (int i = 0; i < kKeys; ++i) write(i, 0);
  // Some keys of each file stay, so that collections carry them along.
  for (int round = 1; round < 12; ++round) {
    for (int i = round % 2; i < kKeys * 3 / 4; i += 2) {
      write(i, round);
      rounds[i] = round;
    }
  }
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  store.Reopen();
  for (int i = 0; i < kKeys; ++i)
    ASSERT_EQ(MetadataOf(*store, KeyOfEntry(i)), fmt::format("{}/{}", i, rounds[i]));
}

TEST(MetadataTest, ATransactionSeesWhatItWrote) {
  TestStore store;
  WriteBatch batch;
  batch.Put("k", "v", {.metadata = "old"});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  Transaction transaction(&*store);
  EXPECT_EQ(MetadataOf(*transaction.contents(), "k"), "old");
  transaction.Put("k", "v", PutExtras{.metadata = "new", .cause = WriteCause::kMetadataChange});
  transaction.Put("plain", "v");
  EXPECT_EQ(MetadataOf(*transaction.contents(), "k"), "new");
  EXPECT_EQ(MetadataOf(*transaction.contents(), "plain"), "");
  {
    const auto iterator = transaction.NewIterator({}, {}, {}, nullptr);
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->metadata(), "new");
  }
  const absl::StatusOr<CountResult> count = transaction.Count({}, {}, "z");
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(count->bytes, 5u + 6);
  transaction.Put("large", "v", PutExtras{.metadata = std::string(kMaxMetadataSize + 1, 'x')});
  EXPECT_TRUE(absl::IsInvalidArgument(transaction.status()));

  const auto committed = RunTransaction(&*store, {}, [](Transaction* again) -> absl::Status {
    again->Put("k", "v", PutExtras{.metadata = "new"});
    return absl::OkStatus();
  });
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(MetadataOf(*store, "k"), "new");
}

TEST(MetadataTest, AQuotaCountsIt) {
  TestStore store;
  WriteBatch batch;
  NamespaceDescription space{.id = kFirstNamedNamespace, .name = "small"};
  space.options.max_bytes = 1000;
  batch.CreateNamespace(space);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  batch.Put("a", "v", {.metadata = std::string(900, 'm')}, space.id);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  batch.Put("b", "v", {.metadata = std::string(200, 'm')}, space.id);
  EXPECT_TRUE(absl::IsResourceExhausted(store->Write({}, &batch).status()));
  batch.Clear();
  batch.Put("a", "v", {.metadata = std::string(100, 'm')}, space.id);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  batch.Put("b", "v", {.metadata = std::string(200, 'm')}, space.id);
  EXPECT_TRUE(store->Write({}, &batch).ok());
}

// --- What is newer than a version ----------------------------------------------------------------

TEST(NewerThanTest, SegmentsThatHoldNothingNewerAreNotRead) {
  EngineOptions options = testing::TestEngineOptions();
  options.segment_size = 64 << 10;
  TestStore store(options);
  constexpr int kKeys = 20'000;
  WriteBatch batch;
  for (int i = 0; i < kKeys; ++i) {
    batch.Put(KeyOfEntry(i), std::string(100, 'v'));
    if (batch.size() == 1000) ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  const SequenceNumber since = store->durable_sequence();
  std::string expected;
  for (int i = 7; i < kKeys; i += 1000) {
    batch.Put(KeyOfEntry(i), "new");
    expected += KeyOfEntry(i) + "=new ";
  }
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  const auto scan = [&](SequenceNumber newer_than, std::string* text) {
    const uint64_t before = store.Statistic("scan_reads");
    const auto iterator =
        store->NewIterator({.fill_cache = false, .newer_than = newer_than}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      text->append(iterator->key()).append("=").append(iterator->value()).append(" ");
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return store.Statistic("scan_reads") - before;
  };
  std::string all, newer;
  const uint64_t reads_of_all = scan(kNoSequence, &all);
  const uint64_t reads_of_newer = scan(since, &newer);
  EXPECT_EQ(newer, expected);
  EXPECT_GT(reads_of_all, 20u);
  EXPECT_LE(reads_of_newer, 2u);
  // Nothing is newer than the newest version.
  std::string none;
  EXPECT_EQ(scan(store->durable_sequence(), &none), 0u);
  EXPECT_EQ(none, "");
}

}  // namespace
}  // namespace varve
