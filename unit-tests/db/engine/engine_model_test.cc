// The engine at random against std::map: every operation of the public header, with restarts,
// snapshots and small sizes, so that flushes and compactions happen all the time.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>

#include "fmt/format.h"
#include "unit-tests/testing/eager_picker.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::TestStore;
using Model = std::map<std::string, std::string>;

class RandomRun {
 public:
  RandomRun(uint64_t seed, EngineOptions options) : random_(seed), store_(std::move(options)) {}

  void Step() {
    const uint64_t dice = random_() % 1000;
    if (dice < 500) {
      Write();
    } else if (dice < 700) {
      Get();
    } else if (dice < 780) {
      Scan();
    } else if (dice < 840) {
      WalkAround();
    } else if (dice < 860) {
      DeleteRange();
    } else if (dice < 862) {
      WriteBatch batch;
      batch.ClearNamespace();
      ASSERT_TRUE(store_->Write({}, &batch).ok());
      model_.clear();
    } else if (dice < 880) {
      TakeSnapshot();
    } else if (dice < 930) {
      ReadSnapshot();
    } else if (dice < 940) {
      ASSERT_TRUE(store_->Flush().ok());
    } else if (dice < 944) {
      const std::string a = RandomKey(), b = RandomKey();
      ASSERT_TRUE(store_->Compact(std::min(a, b), std::max(a, b)).ok());
    } else if (dice < 950) {
      snapshots_.clear();
      store_.Reopen();
    } else {
      Count();
    }
  }

 private:
  std::string RandomKey() {
    const uint64_t number = random_() % 400;
    return random_() % 20 == 0 ? std::string(1, static_cast<char>(number))
                               : fmt::format("key{:03}{}", number, std::string(number % 40, 'x'));
  }

  std::string RandomValue() {
    const uint64_t shape = random_() % 100;
    const size_t size = shape < 80   ? random_() % 200
                        : shape < 98 ? random_() % 3000
                                     : random_() % 60000;
    std::string value = std::to_string(++writes_) + ":";
    value.resize(std::max(size, value.size()), static_cast<char>('a' + writes_ % 26));
    return value;
  }

  void Write() {
    WriteBatch batch;
    Model next = model_;
    for (uint64_t i = 0, size = random_() % 4 == 0 ? 1 + random_() % 30 : 1; i < size; ++i) {
      const std::string key = RandomKey();
      if (random_() % 4 == 0) {
        batch.Delete(key);
        next.erase(key);
      } else {
        const std::string value = RandomValue();
        batch.Put(key, value);
        next[key] = value;
      }
    }
    const Durability modes[] = {Durability::kAlways, Durability::kEverySecond, Durability::kNone};
    const WriteOptions options{.sync = modes[random_() % 3], .override_sync = true};
    const auto result = store_->Write(options, &batch);
    ASSERT_TRUE(result.ok()) << result.status();
    model_ = std::move(next);
  }

  void Get() {
    const std::string key = RandomKey();
    const auto entry = model_.find(key);
    ASSERT_EQ(store_.Get(key), entry == model_.end() ? "(missing)" : entry->second)
        << "key " << key;
  }

  static std::string Text(const Model& model, const std::string& lower, const std::string& upper,
                          bool reverse) {
    std::string text;
    for (auto entry = model.lower_bound(lower);
         entry != model.end() && (upper.empty() || entry->first < upper); ++entry) {
      const std::string one = entry->first + "=" + entry->second + " ";
      text = reverse ? one + text : text + one;
    }
    return text;
  }

  void Scan() {
    std::string lower = random_() % 3 == 0 ? "" : RandomKey(),
                upper = random_() % 3 == 0 ? "" : RandomKey();
    if (!upper.empty() && upper < lower) std::swap(lower, upper);
    const bool reverse = random_() % 2 == 0;
    ASSERT_EQ(store_.Scan(lower, upper, reverse), Text(model_, lower, upper, reverse));
  }

  // One iterator, moved at random.
  void WalkAround() {
    const auto iterator = store_->NewIterator({}, {}, {}, nullptr);
    auto entry = model_.end();
    for (int step = 0; step < 30; ++step) {
      const uint64_t move = random_() % 6;
      if (move == 0) {
        const std::string key = RandomKey();
        iterator->Seek(key);
        entry = model_.lower_bound(key);
      } else if (move == 1) {
        const std::string key = RandomKey();
        iterator->SeekForPrev(key);
        entry = model_.upper_bound(key);
        entry = entry == model_.begin() ? model_.end() : std::prev(entry);
      } else if (!iterator->Valid()) {
        iterator->SeekToFirst();
        entry = model_.begin();
      } else if (move < 4) {
        iterator->Next();
        ++entry;
      } else {
        iterator->Prev();
        entry = entry == model_.begin() ? model_.end() : std::prev(entry);
      }
      ASSERT_EQ(iterator->Valid(), entry != model_.end());
      if (!iterator->Valid()) continue;
      ASSERT_EQ(iterator->key(), entry->first);
      ASSERT_EQ(iterator->value(), entry->second);
    }
  }

  void Count() {
    uint64_t bytes = 0;
    for (const auto& [key, value] : model_) bytes += key.size() + value.size();
    const absl::StatusOr<CountResult> count = store_->Count({}, {}, {});
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_EQ(count->keys, model_.size());
    ASSERT_EQ(count->bytes, bytes);
  }

  void DeleteRange() {
    std::string begin = RandomKey(), end = random_() % 10 == 0 ? "" : RandomKey();
    if (!end.empty() && end < begin) std::swap(begin, end);
    ASSERT_TRUE(store_->DeleteRange(begin, end).ok());
    model_.erase(model_.lower_bound(begin), end.empty() ? model_.end() : model_.lower_bound(end));
  }

  void TakeSnapshot() {
    if (snapshots_.size() >= 4)
      snapshots_.erase(snapshots_.begin() + random_() % snapshots_.size());
    snapshots_.emplace_back(store_->GetSnapshot(), model_);
  }

  void ReadSnapshot() {
    if (snapshots_.empty()) return;
    const auto& [snapshot, model] = snapshots_[random_() % snapshots_.size()];
    const std::string key = RandomKey();
    const auto entry = model.find(key);
    ASSERT_EQ(store_.Get(key, snapshot.get()), entry == model.end() ? "(missing)" : entry->second);
    ASSERT_EQ(store_.Scan({}, {}, random_() % 2 == 0, snapshot.get()).size(),
              Text(model, {}, {}, false).size());
  }

  std::mt19937_64 random_;
  TestStore store_;
  Model model_;
  std::vector<std::pair<std::shared_ptr<const Snapshot>, Model>> snapshots_;  // go before the store
  uint64_t writes_ = 0;
};

class EngineModelTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(EngineModelTest, AgreesWithAMap) {
  EngineOptions options = testing::TestEngineOptions();
  options.segment_size = 48 << 10;
  options.runs_per_level = 3;
  options.max_background_jobs = GetParam() % 2 == 0 ? 4 : 2;
  if (GetParam() % 2 == 0) options.write_buffer_size = 64 << 10;
  if (GetParam() % 4 < 2) options.compaction_picker = std::make_shared<testing::EagerPicker>();
  if (GetParam() % 3 == 0) options.block_cache_size = 0;
  if (GetParam() % 4 == 0) options.offset_table_cache_size = 0;
  if (GetParam() % 3 == 1) options.compression = *ParseCompression("zstd");
  if (GetParam() % 5 == 2) options.compression = *ParseCompression("lz4");
  RandomRun run(GetParam(), options);
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) run.Step();
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineModelTest, ::testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace varve
