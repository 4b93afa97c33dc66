// Clones of namespaces against maps: all that can happen to them and to what they share, at random,
// with keys that expire, snapshots, flushes, merges and restarts in between. Where old versions are
// kept, namespaces are cloned as they were at one, also after they were dropped, and old versions
// of all of them are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;

struct CloneEntry {
  std::string value;
  uint64_t expiry_ms = kNoExpiry;
};
using CloneModel = std::map<std::string, CloneEntry>;
using CloneModels = std::map<NamespaceId, CloneModel>;

constexpr int kCloneKeys = 80;
constexpr size_t kManyNamespaces = 8;        // more are dropped soon
constexpr uint64_t kLastWithoutHistory = 8;  // seed

class ClonesModelTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  static EngineOptions Options(const Clock* clock, uint64_t seed) {
    EngineOptions options = testing::TestEngineOptions();
    options.clock = clock;
    options.segment_size = 48 << 10;
    options.runs_per_level = 3;
    options.sync = Durability::kNone;
    if (seed % 2 == 0) options.write_buffer_size = 16 << 10;
    if (seed % 3 == 0) options.runs_per_level = 2;
    if (seed > kLastWithoutHistory) options.history.time_ms = 86'400'000;
    if (seed > kLastWithoutHistory && seed % 4 == 0) options.history.bytes = 20'000;
    return options;
  }

  std::string RandomKey() { return fmt::format("key{:02}", random_() % kCloneKeys); }
  NamespaceId Any() {
    return std::next(models_.begin(), static_cast<ptrdiff_t>(random_() % models_.size()))->first;
  }
  static bool IsLive(const CloneEntry& entry, uint64_t now_ms) {
    return entry.expiry_ms == kNoExpiry || entry.expiry_ms > now_ms;
  }
  static std::string Text(const CloneModel& model, uint64_t now_ms, bool reverse = false) {
    std::vector<std::string> pairs;
    for (const auto& [key, entry] : model) {
      if (IsLive(entry, now_ms)) pairs.push_back(key + "=" + entry.value + " ");
    }
    if (reverse) std::reverse(pairs.begin(), pairs.end());
    std::string text;
    for (const std::string& pair : pairs) text += pair;
    return text;
  }
  std::string Scan(NamespaceId space, const Snapshot* snapshot = nullptr, bool reverse = false) {
    std::string text;
    const auto iterator =
        store_->NewIterator({.snapshot = snapshot, .space = space}, {}, {}, nullptr);
    for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
         reverse ? iterator->Prev() : iterator->Next()) {
      text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
    }
    return iterator->status().ok() ? text : std::string(iterator->status().message());
  }

  void Write(WriteBatch* batch, CloneModels next) {
    const absl::StatusOr<CommitResult> written = store_->Write({}, batch);
    ASSERT_TRUE(written.ok()) << written.status();
    models_ = std::move(next);
    past_[written->sequence] = {models_, clock_.WallMillis()};
  }

  void WriteKeys() {
    WriteBatch batch;
    CloneModels next = models_;
    for (uint64_t writes = 1 + random_() % 8; writes > 0; --writes) {
      const NamespaceId id = Any();
      const std::string key = RandomKey();
      if (random_() % 3 == 0) {
        batch.Delete(key, id);
        next[id].erase(key);
      } else {
        CloneEntry entry{std::string(random_() % 300, static_cast<char>('a' + random_() % 26)),
                         kNoExpiry};
        if (random_() % 6 == 0) entry.expiry_ms = clock_.WallMillis() + 1 + random_() % 4000;
        batch.Put(key, entry.value, id, entry.expiry_ms);
        next[id][key] = entry;
      }
    }
    Write(&batch, std::move(next));
  }

  // Some of them are databases, some have names.
  void Clone() {
    const NamespaceId source = Any();
    NamespaceDescription space{.id = store_->Namespaces()->next_id};
    if (random_() % 2 == 0) {
      space.id = 1 + static_cast<NamespaceId>(random_() % 3);
    } else {
      space.name = fmt::format("clone{}", space.id);
    }
    WriteBatch batch;
    batch.CloneNamespace(source, space);
    if (models_.contains(space.id)) {
      ASSERT_TRUE(absl::IsAlreadyExists(store_->Write({}, &batch).status()));
      return;
    }
    CloneModels next = models_;
    next[space.id] = models_[source];
    Write(&batch, std::move(next));
  }

  // Of any namespace at any version, also of one that is gone since, which may come back.
  void ClonePast() {
    if (past_.empty()) return;
    const auto& [version, state] =
        *std::next(past_.begin(), static_cast<ptrdiff_t>(random_() % past_.size()));
    if (state.models.empty()) return;
    const auto source =
        std::next(state.models.begin(), static_cast<ptrdiff_t>(random_() % state.models.size()));
    NamespaceDescription space{.id = store_->Namespaces()->next_id};
    space.name = fmt::format("clone{}", space.id);
    if (!models_.contains(source->first) && source->first >= kFirstNamedNamespace) {
      space.id = source->first;
      space.name = fmt::format("clone{}", space.id);
    }
    WriteBatch batch;
    batch.CloneNamespaceAt(source->first, version, space);
    const SequenceNumber first = *store_->FirstVersion(source->first);
    const absl::StatusOr<CommitResult> written = store_->Write({}, &batch);
    if (FirstOfTrimmed(written.status())) {
      ASSERT_GT(FirstOfTrimmed(written.status()), version);
      ++trimmed_;
      return;
    }
    if (absl::IsResourceExhausted(written.status())) return;  // a clone of too many clones
    ASSERT_TRUE(written.ok()) << written.status() << " of " << source->first << " at " << version;
    ASSERT_LE(first, version);
    ASSERT_TRUE(batch.empty());
    CloneModel left;
    for (const auto& [key, entry] : source->second) {
      if (IsLive(entry, clock_.WallMillis())) left[key] = entry;
    }
    models_[space.id] = std::move(left);
    past_[written->sequence] = {models_, clock_.WallMillis()};
    ++cloned_;
  }

  void ReadPast() {
    if (past_.empty()) return;
    const auto& [version, state] =
        *std::next(past_.begin(), static_cast<ptrdiff_t>(random_() % past_.size()));
    for (const auto& [space, model] : state.models) {
      const auto snapshot = store_->SnapshotAt(space, version, state.instant_ms);
      if (FirstOfTrimmed(snapshot.status())) continue;
      ASSERT_TRUE(snapshot.ok()) << snapshot.status() << " of " << space << " at " << version;
      ASSERT_EQ(Scan(space, snapshot->get()), Text(model, state.instant_ms))
          << "namespace " << space << " at " << version;
    }
  }

  void ChangeNamespaces(uint64_t dice) {
    WriteBatch batch;
    CloneModels next = models_;
    const NamespaceId id = Any();
    if ((dice < 4 || models_.size() > kManyNamespaces) && id != 0) {
      batch.DropNamespace(id);
      next.erase(id);
    } else if (dice < 8) {
      const NamespaceId other = Any();
      batch.SwapNamespaces(id, other);
      std::swap(next[id], next[other]);
    } else if (dice < 10) {
      batch.ClearNamespace(id);
      next[id].clear();
    } else {
      const std::string begin = RandomKey();
      const std::string end = random_() % 4 == 0 ? "" : RandomKey();
      batch.DeleteRange(begin, end, id);
      const auto first = next[id].lower_bound(begin);
      const auto last = end.empty() ? next[id].end() : next[id].lower_bound(end);
      if (end.empty() || begin < end) next[id].erase(first, last);
    }
    Write(&batch, std::move(next));
  }

  void CheckReads() {
    const uint64_t now_ms = clock_.WallMillis();
    for (const auto& [space, model] : models_) {
      ASSERT_EQ(Scan(space), Text(model, now_ms)) << "namespace " << space;
      ASSERT_EQ(Scan(space, nullptr, /*reverse=*/true), Text(model, now_ms, true))
          << "namespace " << space;
    }
  }

  void CheckLookups() {
    const NamespaceId space = Any();
    std::vector<std::string> keys;
    for (int i = 0; i < 20; ++i) keys.push_back(RandomKey());
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<MultiGetResult> results(keys.size());
    ASSERT_TRUE(store_->MultiGet({.space = space}, views, absl::MakeSpan(results)).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto entry = models_[space].find(keys[i]);
      const bool is_there =
          entry != models_[space].end() && IsLive(entry->second, clock_.WallMillis());
      std::string value;
      const absl::StatusOr<ReadResult> read = store_->Get({.space = space}, keys[i], &value);
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_TRUE(results[i].status.ok()) << results[i].status;
      ASSERT_EQ(read->found, is_there) << keys[i] << " of " << space;
      ASSERT_EQ(results[i].result.found, is_there) << keys[i] << " of " << space;
      if (!is_there) continue;
      EXPECT_EQ(value, entry->second.value);
      EXPECT_EQ(results[i].value, entry->second.value);
      EXPECT_EQ(read->expiry_ms, entry->second.expiry_ms);
      const absl::StatusOr<ExplainedRead> explained = store_->ExplainGet({.space = space}, keys[i]);
      ASSERT_TRUE(explained.ok() && explained->result.found) << explained.status();
      EXPECT_EQ(explained->result.version, read->version);
    }
  }

  void CheckCount() {
    const NamespaceId space = Any();
    uint64_t keys = 0, bytes = 0;
    for (const auto& [key, entry] : models_[space]) {
      if (!IsLive(entry, clock_.WallMillis())) continue;
      ++keys;
      bytes += key.size() + entry.value.size();
    }
    const absl::StatusOr<CountResult> count = store_->Count({.space = space}, {}, {});
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_EQ(count->keys, keys) << "namespace " << space;
    ASSERT_EQ(count->bytes, bytes) << "namespace " << space;
  }

  void Step() {
    const uint64_t dice = random_() % 100;
    if (dice < 40) {
      WriteKeys();
    } else if (dice < 48) {
      GetParam() > kLastWithoutHistory&& dice % 2 == 0 ? ClonePast() : Clone();
    } else if (dice < 61) {
      ChangeNamespaces(dice - 48);
    } else if (dice < 66) {
      ASSERT_TRUE(store_->Flush().ok());
    } else if (dice < 68) {
      const absl::Status merged = store_->Compact({}, {}, Any());
      ASSERT_TRUE(merged.ok()) << merged;
    } else if (dice < 71) {
      if (snapshots_.size() > 3) snapshots_.erase(snapshots_.begin());
      snapshots_.push_back({store_->GetSnapshot(), models_, clock_.WallMillis()});
    } else if (dice < 74) {
      snapshots_.clear();
      store_.Reopen();
    } else if (dice < 76) {
      clock_.Advance(random_() % 3000);
    } else if (dice < 81 && !snapshots_.empty()) {
      const Held& held = snapshots_[random_() % snapshots_.size()];
      for (const auto& [space, model] : held.models) {
        ASSERT_EQ(Scan(space, held.snapshot.get()), Text(model, held.instant_ms))
            << "namespace " << space;
      }
    } else if (dice < 86) {
      CheckReads();
      if (GetParam() > kLastWithoutHistory) ReadPast();
    } else if (dice < 91) {
      CheckLookups();
    } else {
      CheckCount();
    }
  }

  struct Held {
    std::shared_ptr<const Snapshot> snapshot;
    CloneModels models;
    uint64_t instant_ms;
  };

  ManualClock clock_;
  TestStore store_{Options(&clock_, GetParam())};
  std::mt19937_64 random_{GetParam()};
  CloneModels models_ = {{0, {}}};
  std::vector<Held> snapshots_;
  struct Past {
    CloneModels models;
    uint64_t instant_ms = 0;
  };
  std::map<SequenceNumber, Past> past_;  // after each write
  int cloned_ = 0, trimmed_ = 0;         // as of the past
};

TEST_P(ClonesModelTest, AgreeWithMaps) {
  for (int step = 0; step < 400; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    ASSERT_NO_FATAL_FAILURE(Step());
  }
  ASSERT_NO_FATAL_FAILURE(CheckReads());
  for (const auto& [space, model] : models_) {
    const absl::StatusOr<CountResult> count = store_->Count({.space = space}, {}, {});
    ASSERT_TRUE(count.ok()) << count.status();
    uint64_t keys = 0;
    for (const auto& [key, entry] : model) keys += IsLive(entry, clock_.WallMillis()) ? 1 : 0;
    EXPECT_EQ(count->keys, keys) << "namespace " << space;
  }
  if (GetParam() <= kLastWithoutHistory) return;
  EXPECT_GT(cloned_, 0);
  if (GetParam() % 4 == 0) {
    EXPECT_GT(trimmed_, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClonesModelTest, ::testing::Range<uint64_t>(1, 17));

}  // namespace
}  // namespace varve
