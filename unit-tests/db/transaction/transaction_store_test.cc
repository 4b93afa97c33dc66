#include "db/transaction/transaction_store.h"

#include <gtest/gtest.h>

#include <string>

#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::TestStore;

void SetOutside(Store* store, std::string_view key, std::string_view value) {
  WriteBatch batch;
  batch.Put(key, value);
  ASSERT_TRUE(store->Write({}, &batch).ok());
}

TEST(TransactionStoreTest, TakesBatchesAndUpdatesIntoTheTransaction) {
  TestStore store;
  SetOutside(&*store, "a", "1");
  SetOutside(&*store, "b", "2");
  Transaction transaction(&*store);
  StoreContents& inside = *transaction.contents();
  WriteBatch batch;
  batch.DeleteRange("b", "");
  batch.Put("c", "3");
  ASSERT_TRUE(inside.Submit({}, &batch).ok());
  const std::string_view key = "a";
  ASSERT_TRUE(inside
                  .Update({}, {&key, 1},
                          [&](WriteBatch* update) -> absl::Status {
                            std::string value;
                            const auto read = inside.Get({}, key, &value);
                            if (!read.ok()) return read.status();
                            update->RequireUnchanged(key, read->read_sequence);
                            update->Put(key, value + "1");
                            return absl::OkStatus();
                          })
                  .ok());
  const std::string_view keys[] = {"a", "b", "c"};
  MultiGetResult results[3];
  ASSERT_TRUE(inside.MultiGet({}, keys, absl::MakeSpan(results)).ok());
  EXPECT_EQ(results[0].value, "11");
  EXPECT_FALSE(results[1].result.found);
  EXPECT_EQ(results[2].value, "3");
  EXPECT_EQ(store.Scan(), "a=1 b=2 ");
  ASSERT_TRUE(transaction.Commit().ok());
  EXPECT_EQ(store.Scan(), "a=11 c=3 ");
}

}  // namespace
}  // namespace varve
