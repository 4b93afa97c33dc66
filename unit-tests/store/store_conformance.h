// What every store keeps to, whatever lies below it: tests of the Store interface for each of its
// groups, with a factory as their parameter. A store takes part by an INSTANTIATE_TEST_SUITE_P. A
// test of a promise that not every store makes (StoreCapabilities) expects a FailedPrecondition of
// the others.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "varve/store.h"

namespace varve {

// A store in a place of its own, and all that has to outlive it.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual Store& store() = 0;
};

struct StoreFactory {
  std::string name;
  // Null: the store can't be had here, and its tests are skipped.
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

class StoreConformanceTest : public ::testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override {
    under_test_ = GetParam().make();
    if (under_test_ == nullptr) GTEST_SKIP() << "there is nothing to open this store with";
  }

  Store& store() { return under_test_->store(); }

  void Put(std::string_view key, std::string_view value, NamespaceId space = kDefaultNamespace);
  void Delete(std::string_view key, NamespaceId space = kDefaultNamespace);
  // The value, "(missing)", or the error.
  std::string Get(std::string_view key, NamespaceId space = kDefaultNamespace);
  ReadResult Read(std::string_view key, NamespaceId space = kDefaultNamespace);
  // Creates a namespace whose keys are one group, so that every store writes them together.
  NamespaceId NamespaceOfOneGroup();
  // "key=value " of the range in key order, or against it.
  std::string Scan(std::string_view lower = {}, std::string_view upper = {},
                   bool descending = false, NamespaceId space = kDefaultNamespace);
  // The same, read in slices of `max_entries`.
  std::string ScanInSlices(StoreReads::RangeRequest range);

 private:
  std::unique_ptr<StoreUnderTest> under_test_;
};

}  // namespace varve
