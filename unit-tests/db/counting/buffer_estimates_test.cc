// What write buffers hold of each namespace, walked a part at a time.
#include "db/counting/buffer_estimates.h"

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/namespace_calls.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::TestStore;

EngineOptions Options() {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  options.write_buffer_size = 64 << 20;
  return options;
}

NamespaceEstimate First(TestStore& store) {
  const StoreObservation seen = store->Observe();
  return seen.namespaces.empty() ? NamespaceEstimate() : seen.namespaces[0];
}

void Fill(TestStore& store, uint64_t keys) {
  for (uint64_t i = 0; i < keys; ++i)
    ASSERT_TRUE(store->Put(fmt::format("key{:06}", i), "0123456789").ok());
}

TEST(BufferEstimatesTest, AreExactOnceAllIsWalked) {
  TestStore store(Options());
  Fill(store, 1000);
  EXPECT_EQ(First(store).keys, 1000u);
  EXPECT_EQ(First(store).bytes, 1000u * 19);
  Fill(store, 500);
  EXPECT_EQ(First(store).keys, 1000u) << "overwritten keys count once";
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store->Delete(fmt::format("key{:06}", i)).ok());
  EXPECT_EQ(First(store).keys, 900u);
  EXPECT_EQ(First(store).bytes, 900u * 19);
}

TEST(BufferEstimatesTest, ExtrapolateWhatIsNotWalkedYet) {
  TestStore store(Options());
  const uint64_t keys = 3 * BufferEstimates::kMostWalked + 1000;
  Fill(store, keys);
  EXPECT_NEAR(static_cast<double>(First(store).keys), static_cast<double>(keys), 10);
  for (int i = 0; i < 3; ++i) First(store);
  EXPECT_EQ(First(store).keys, keys);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_NEAR(static_cast<double>(First(store).keys), static_cast<double>(keys), 10);
}

void PutMany(TestStore& store, NamespaceId space, uint64_t writes, bool same_key) {
  for (uint64_t i = 0; i < writes;) {
    WriteBatch batch;
    batch.UseNamespace(space);
    for (int of_batch = 0; of_batch < 1000 && i < writes; ++of_batch, ++i)
      batch.Put(same_key ? "same" : fmt::format("key{:06}", i), "0123456789");
    ASSERT_TRUE(store->Write({}, &batch).ok());
  }
}

TEST(BufferEstimatesTest, NewKeysCountBesideManyDeadOnes) {
  TestStore store(Options());
  PutMany(store, kDefaultNamespace, 300'000, /*same_key=*/true);
  Fill(store, 20);
  EXPECT_EQ(First(store).keys, 21u) << "the newest records are not extrapolated away";
  EXPECT_EQ(First(store).bytes, 14u + 20 * 19);
}

TEST(BufferEstimatesTest, ANamespaceThatIsNewerThanTheWalkCounts) {
  TestStore store(Options());
  ASSERT_TRUE(testing::Create(store, 3).ok());
  PutMany(store, 3, 300'000, /*same_key=*/false);
  Fill(store, 25);
  const StoreObservation seen = store->Observe();
  ASSERT_EQ(seen.namespaces.size(), 2u);
  EXPECT_EQ(seen.namespaces[0].keys, 25u);
  EXPECT_NEAR(static_cast<double>(seen.namespaces[1].keys), 300'000, 10);
  ASSERT_TRUE(testing::Drop(store, 3).ok());
  PutMany(store, kDefaultNamespace, 40'000, /*same_key=*/false);
  EXPECT_NEAR(static_cast<double>(First(store).keys), 40'000, 10'000) << "spread over all records";
}

}  // namespace
}  // namespace varve
