// How near the estimates of ranges come, and that they read nothing.
#include "db/version/range_estimate.h"

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::TestStore;

constexpr int kUsers = 20'000, kSessions = 5'000;
constexpr double kUserBytes = 110, kSessionBytes = 420;  // about, in a segment

void Fill(TestStore& store) {
  for (int i = 0; i < kUsers; ++i)
    ASSERT_TRUE(store->Put(fmt::format("user:{:06}", i), std::string(90, 'u')).ok());
  for (int i = 0; i < kSessions; ++i)
    ASSERT_TRUE(store->Put(fmt::format("session:{:06}", i), std::string(400, 's')).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact("", "").ok());
}

// Estimates are less exact for the small segments that the environment may ask for.
EngineOptions Options() {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.segment_size = 512 << 10;
  return options;
}

double Bytes(TestStore& store, const std::string& lower, const std::string& upper) {
  return static_cast<double>(store->EstimateBytes(kDefaultNamespace, lower, upper));
}

uint64_t Reads(TestStore& store) {
  return store.Statistic("record_reads") + store.Statistic("table_page_reads") +
         store.Statistic("scan_reads") + store.Statistic("offset_table_loads");
}

TEST(RangeEstimateTest, ComesNearToWhatAPrefixTakes) {
  TestStore store(Options());
  Fill(store);
  // A read of each part has its fences loaded.
  ASSERT_EQ(store->Count({}, "a", "z").value().keys, uint64_t{kUsers + kSessions});
  const uint64_t reads = Reads(store);
  const double users = Bytes(store, "user:", "user;");
  const double sessions = Bytes(store, "session:", "session;");
  EXPECT_NEAR(users, kUsers * kUserBytes, 0.2 * kUsers * kUserBytes);
  EXPECT_NEAR(sessions, kSessions * kSessionBytes, 0.2 * kSessions * kSessionBytes);
  EXPECT_NEAR(Bytes(store, "", ""), users + sessions, 50'000);
  EXPECT_NEAR(Bytes(store, "user:010000", "user;"), users / 2, users / 20);
  const auto keys = [&](const std::string& lower, const std::string& upper) {
    return static_cast<double>(store->EstimateSize(kDefaultNamespace, lower, upper).keys);
  };
  EXPECT_NEAR(keys("user:", "user;"), kUsers, 0.1 * kUsers);
  EXPECT_NEAR(keys("session:", "session;"), kSessions, 0.1 * kSessions);
  EXPECT_EQ(Bytes(store, "a", "b"), 0);
  EXPECT_EQ(Bytes(store, "x", ""), 0);
  EXPECT_EQ(Reads(store), reads);
}

TEST(RangeEstimateTest, WithoutFencesItGoesByTheKeysOfTheSegments) {
  TestStore store(Options());
  Fill(store);
  store.Reopen();
  const uint64_t reads = Reads(store);
  const double users = Bytes(store, "user:", "user;");
  EXPECT_NEAR(users, kUsers * kUserBytes, 0.4 * kUsers * kUserBytes);
  EXPECT_EQ(Reads(store), reads);
  const StoreObservation seen = store->Observe();
  ASSERT_EQ(seen.namespaces.size(), 1u);
  EXPECT_EQ(seen.namespaces[0].name, "0");
  EXPECT_NEAR(static_cast<double>(seen.namespaces[0].keys), kUsers + kSessions, 100);
}

TEST(RangeEstimateTest, SaysWhatTheValuesOfEachNamespaceTake) {
  EngineOptions options = Options();
  options.compression = {CompressionMethod::kLz4, 0};
  TestStore store(options);
  WriteBatch create;
  create.CreateNamespace({.id = kFirstNamedNamespace, .name = "second"});
  ASSERT_TRUE(store->Write({}, &create).ok());
  constexpr int kKeys = 1000;  // of each, in one segment
  for (int i = 0; i < kKeys; ++i) {
    WriteBatch batch;
    batch.Put(fmt::format("key:{:06}", i), std::string(100, 'a'), kDefaultNamespace);
    batch.Put(fmt::format("key:{:06}", i), std::string(300, 'b'), kFirstNamedNamespace);
    ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  ASSERT_TRUE(store->Compact("", "").ok());
  const auto plain = [&](NamespaceId space, const std::string& lower = {}) {
    return store->EstimateSize(space, lower, "").plain_value_bytes;
  };
  EXPECT_EQ(plain(kDefaultNamespace), kKeys * 100u);
  EXPECT_EQ(plain(kFirstNamedNamespace), kKeys * 300u);
  EXPECT_LT(store->EstimateSize(kFirstNamedNamespace, "", "").stored_value_bytes, kKeys * 150u);
  EXPECT_NEAR(static_cast<double>(plain(kDefaultNamespace, "key:000500")), kKeys * 50, kKeys * 10);
}

}  // namespace
}  // namespace varve
