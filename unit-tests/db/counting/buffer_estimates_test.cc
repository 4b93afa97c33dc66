// What write buffers hold of each namespace, walked a part at a time.
#include "db/counting/buffer_estimates.h"

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
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

}  // namespace
}  // namespace varve
