// The engine where memory runs out at any of its allocations: each call answers ResourceExhausted
// and changes nothing, or does all that it says; no thread ends, no lock stays held, and as soon as
// there is memory everything goes on. What the tests of it share.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "unit-tests/memory/allocation_faults.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/test_store.h"

namespace varve::testing {

inline EngineOptions SmallOptions() {
  EngineOptions options;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 64u << 10;
  options.block_cache_size = 1u << 20;
  options.offset_table_cache_size = 1u << 20;
  return options;
}

// What is tested: allocations in here fail.
template <typename Function>
auto Call(Function function) {
  const AllocationFaults::Scope scope(true);
  return function();
}

class MemoryTest : public ::testing::Test {
 protected:
  using Content = std::map<std::string, std::string>;

  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }

  // Some keys in segments, some in the write buffer, some deleted.
  void Fill() {
    store_->SetSync(Durability::kNone);
    for (int i = 0; i < 300; ++i)
      Put(fmt::format("key{:04}", i), std::string(200, static_cast<char>('a' + i % 26)));
    EXPECT_TRUE(store_->DeleteRange("key0100", "key0110").ok());
    content_.erase(content_.lower_bound("key0100"), content_.lower_bound("key0110"));
    EXPECT_TRUE(store_->Flush().ok());
    for (int i = 0; i < 40; ++i) Put(fmt::format("key{:04}", 7 * i), fmt::format("new{}", i));
    store_->SetSync(Durability::kAlways);
  }

  void Put(const std::string& key, const std::string& value) {
    const absl::Status status = store_->Put(key, value);
    ASSERT_TRUE(status.ok()) << status;
    content_[key] = value;
  }

  static Content ContentOf(StorageEngine& store) {
    Content content;
    const auto iterator = store.NewIterator({}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      content.emplace(iterator->key(), iterator->value());
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return content;
  }

  void ExpectContent(const std::string& when) {
    EXPECT_TRUE(ContentOf(*store_) == content_) << when;
    const absl::StatusOr<CountResult> count = store_->Count({}, {}, {});
    ASSERT_TRUE(count.ok()) << when << ": " << count.status();
    EXPECT_EQ(count->keys, content_.size()) << when;
  }

  std::string FilesAndManifest() const {
    std::vector<std::string> names;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path(), gone))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    std::ifstream manifest(store_.directory.File("MANIFEST"), std::ios::binary);
    return absl::StrJoin(names, "/") + std::string(std::istreambuf_iterator<char>(manifest), {});
  }

  // Opens what a killed process would leave behind.
  void ExpectContentAfterCrash(const std::string& when) {
    const TempDir copy;
    // All of one moment: upkeep makes and removes files meanwhile.
    ASSERT_TRUE(Eventually([&] {
      std::filesystem::remove_all(copy.File("store"));
      const std::string before = FilesAndManifest();
      std::error_code failed;
      std::filesystem::copy(store_.directory.path(), copy.File("store"), failed);
      return !failed && FilesAndManifest() == before;
    }));
    const auto opened = StorageEngine::Open(copy.File("store"), store_.options);
    ASSERT_TRUE(opened.ok()) << when << ": " << opened.status();
    EXPECT_TRUE(ContentOf(**opened) == content_) << when;
  }

  static void ExpectLackOfMemory(const absl::Status& status, const std::string& when) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << when << ": " << status;
    const std::string_view message(status.message().data(), status.message().size());
    EXPECT_TRUE(message.empty() || message.find("out of memory") != message.npos)
        << when << ": " << status;
  }

  // Runs `operation` with its n-th allocation failing alone, and with all from the n-th on, for
  // every n until it needs fewer (behind `all_up_to`, which spares operations that take the disk's
  // time, only for some). `prepare` runs before each, `check` after each.
  void FailEach(const std::string& name, const std::function<absl::Status()>& operation,
                const std::function<void()>& prepare,
                const std::function<void(const std::string&)>& check,
                uint64_t times = AllocationFaults::kForGood,
                uint64_t all_up_to = AllocationFaults::kForGood) {
    for (const uint64_t failures : {uint64_t{1}, times}) {
      for (uint64_t nth = 1;; nth += 1 + nth / all_up_to) {
        const std::string when =
            fmt::format("{}, allocation {} of {} failing", name, nth, failures);
        prepare();
        absl::Status status;
        bool reached;
        {
          const AllocationFaults faults(nth, failures);
          status = operation();
          reached = faults.reached();
        }
        if (!status.ok()) ExpectLackOfMemory(status, when);
        if (!status.ok()) EXPECT_TRUE(reached) << when;
        check(when);
        if (!reached || HasFailure()) break;
        ASSERT_LT(nth, 5000u) << when;
      }
    }
  }

  // The same for operations that write: `operation` changes content_ when it was told that it was
  // done.
  void FailEachWrite(const std::string& name, const std::function<absl::Status()>& operation) {
    FailEach(
        name, operation, [] {}, [this](const std::string& when) { ExpectContent(when); });
    ExpectContentAfterCrash(name);
    store_.Reopen();
    ExpectContent(name + ", reopened");
  }

  TestStore store_{SmallOptions()};
  Content content_;
};

}  // namespace varve::testing
