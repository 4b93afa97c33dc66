// What every store keeps to, whatever lies below it: tests of the Store interface for each of its
// groups, with a factory as their parameter. A store takes part by an INSTANTIATE_TEST_SUITE_P. A
// test of a promise that not every store makes (StoreCapabilities) expects a FailedPrecondition of
// the others. A store has to be able to create namespaces.
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
  // Returns null if the store can't be had here; its tests are skipped.
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

class StoreConformanceTest : public ::testing::TestWithParam<StoreFactory> {
 protected:
  // The default namespace, and one whose keys are one group, so that every store writes several of
  // them together.
  static constexpr NamespaceId kTogether = 9;

  void SetUp() override;

  Store& store() { return under_test_->store(); }

  void Put(std::string_view key, std::string_view value, NamespaceId space = kDefaultNamespace);
  void Delete(std::string_view key);
  // The value, "(missing)", or the error.
  std::string Get(std::string_view key, NamespaceId space = kDefaultNamespace);
  ReadResult Read(std::string_view key, NamespaceId space = kDefaultNamespace);
  // "key=value " of the range in key order, or against it.
  std::string Scan(std::string_view lower = {}, std::string_view upper = {},
                   bool descending = false, NamespaceId space = kDefaultNamespace);
  absl::Status Create(const NamespaceDescription& space);
  // The same, read in slices of `max_entries`.
  std::string ScanInSlices(StoreReads::RangeRequest range);

 private:
  std::unique_ptr<StoreUnderTest> under_test_;
};

}  // namespace varve
