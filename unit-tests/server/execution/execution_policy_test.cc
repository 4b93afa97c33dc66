#include "server/execution/execution_policy.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

RequestBatch Batch(uint32_t reads, uint32_t writes) {
  RequestBatch batch;
  batch.reads = reads;
  batch.writes = writes;
  return batch;
}

TEST(ExecutionPolicyTest, SmallBatchesRunWhereTheyWereRead) {
  const KeyCost read(400);
  const KeyCost write(600);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(1, 0), read, write, false), Placement::kInline);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(64, 0), read, write, false), Placement::kInline);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(0, 64), read, write, false), Placement::kInline);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(1000, 0), read, write, false), Placement::kPool);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(0, 1), read, write, false), Placement::kInline);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(0, 1), read, write, true), Placement::kPool);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(1, 0), read, write, true), Placement::kInline);
}

TEST(ExecutionPolicyTest, LargeRequestsRunOnThePool) {
  const KeyCost cost(100);
  RequestBatch batch = Batch(0, 64);
  batch.input_bytes = 64 * 140;  // a pipeline of small SETs
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, batch, cost, cost, false), Placement::kInline);
  batch = Batch(0, 1);
  batch.input_bytes = 1u << 20;
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, batch, cost, cost, false), Placement::kPool);
  EXPECT_EQ(PlaceBatch(Execution::kInline, batch, cost, cost, false), Placement::kInline);
}

TEST(ExecutionPolicyTest, TheModesAreObeyed) {
  const KeyCost cost(400);
  RequestBatch slow = Batch(0, 0);
  slow.slow = true;
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, slow, cost, cost, false), Placement::kPool);
  EXPECT_EQ(PlaceBatch(Execution::kInline, slow, cost, cost, false), Placement::kInline);
  EXPECT_EQ(PlaceBatch(Execution::kPool, Batch(1, 0), cost, cost, false), Placement::kPool);
  slow.maintenance = true;
  for (const Execution mode : {Execution::kAdaptive, Execution::kInline, Execution::kPool}) {
    EXPECT_EQ(PlaceBatch(mode, slow, cost, cost, false), Placement::kMaintenance);
  }
}

TEST(ExecutionPolicyTest, ReadsThatTurnOutSlowMoveToThePoolAndBack) {
  KeyCost read(400);
  const KeyCost write(600);
  for (int i = 0; i < 40; ++i) read.Measured(100'000, 1);  // disk reads
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(1, 0), read, write, false), Placement::kPool);
  for (int i = 0; i < 100; ++i) read.Measured(400, 1);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(1, 0), read, write, false), Placement::kInline);
}

TEST(ExecutionPolicyTest, AThreadThatLostItsCoreIsNoDisk) {
  KeyCost read(400);
  const KeyCost write(600);
  for (int i = 0; i < 1000; ++i) read.Measured(i % 10 == 0 ? 5'000'000 : 400, 1);
  EXPECT_EQ(PlaceBatch(Execution::kAdaptive, Batch(64, 0), read, write, false), Placement::kInline);
}

}  // namespace
}  // namespace varve
