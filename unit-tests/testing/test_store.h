// A store in a directory of its own that can be closed, crashed and opened again.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/testing/engine_options.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve::testing {

class TestStore {
 public:
  explicit TestStore(EngineOptions engine_options = TestEngineOptions())
      : options(std::move(engine_options)) {
    Open();
  }

  StorageEngine* operator->() { return store_.get(); }
  StorageEngine& operator*() { return *store_; }

  void Open() {
    store_.reset();  // a closed store still holds its lock
    auto opened = StorageEngine::Open(directory.path(), options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void Close() {
    const absl::Status status = store_->Close();
    EXPECT_TRUE(status.ok()) << status;
    store_.reset();
  }
  void Reopen() {
    Close();
    Open();
  }

  // The value, "(missing)", or the error.
  std::string Get(std::string_view key, const Snapshot* snapshot = nullptr) {
    std::string value;
    const absl::StatusOr<ReadResult> result = store_->Get({.snapshot = snapshot}, key, &value);
    if (!result.ok()) return result.status().ToString();
    return result->found ? value : "(missing)";
  }

  // "key=value " of the range, forward or backward.
  std::string Scan(std::string_view lower = {}, std::string_view upper = {}, bool reverse = false,
                   const Snapshot* snapshot = nullptr) {
    std::string text;
    const auto iterator = store_->NewIterator({.snapshot = snapshot}, lower, upper, nullptr);
    for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
         reverse ? iterator->Prev() : iterator->Next()) {
      text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
    }
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return text;
  }

  uint64_t Statistic(const std::string& name) {
    for (const auto& [key, value] : store_->Statistics()) {
      if (key == name) return value;
    }
    ADD_FAILURE() << "no statistic " << name;
    return 0;
  }

  EngineOptions options;
  TempDir directory;

 private:
  std::unique_ptr<StorageEngine> store_;
};

}  // namespace varve::testing
