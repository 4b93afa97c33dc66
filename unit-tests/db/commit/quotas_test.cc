#include "db/commit/quotas.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "unit-tests/db/commit/pipeline_parts.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::PipelineParts;

constexpr NamespaceId kSmall = 3;

// A namespace of at most three keys.
class QuotasTest : public ::testing::Test {
 protected:
  QuotasTest() {
    WriteBatch batch;
    NamespaceDescription space;
    space.id = kSmall;
    space.options.max_keys = 3;
    batch.CreateNamespace(space);
    EXPECT_TRUE(parts_.Submit(&batch).ok());
  }
  absl::Status Put(const std::string& key) {
    WriteBatch batch;
    batch.Put(key, "1", kSmall);
    return quotas_.Submit({}, &batch).status();
  }

  PipelineParts parts_;
  Quotas quotas_{parts_.ForQuotas()};
};

TEST_F(QuotasTest, ThePipelineAsksForTheCheckAndDoesNothingElse) {
  WriteBatch batch;
  batch.Put("a", "1", kSmall);
  bool must_check = false;
  EXPECT_TRUE(parts_.pipeline().TrySubmit({}, &batch, nullptr, &must_check).ok());
  EXPECT_TRUE(must_check);
  EXPECT_EQ(parts_.pipeline().writes(), 1u);  // the namespace
}

TEST_F(QuotasTest, AKeyBeyondTheQuotaIsRefused) {
  for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(Put(key).ok());
  EXPECT_TRUE(IsNamespaceFull(Put("d")));
  EXPECT_TRUE(Put("a").ok());  // replaces one
}

TEST_F(QuotasTest, ARefusalTellsWhichQuotaIsFull) {
  constexpr NamespaceId kShort = 4;
  NamespaceDescription space{.id = kShort};
  space.options.max_keys = 3;
  space.options.max_bytes = 10;
  WriteBatch batch;
  batch.CreateNamespace(space);
  ASSERT_TRUE(parts_.Submit(&batch).ok());
  for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(Put(key).ok());
  using Of = NamespaceQuota::Of;
  EXPECT_EQ(FullQuota(Put("d")), (NamespaceQuota{.space = kSmall, .of = Of::kKeys}));
  batch.Clear();
  batch.Put("key", "more bytes", kShort);
  EXPECT_EQ(FullQuota(quotas_.Submit({}, &batch).status()),
            (NamespaceQuota{.space = kShort, .of = Of::kBytes}));
  EXPECT_EQ(FullQuota(absl::ResourceExhaustedError("the disk is full")), std::nullopt);
}

TEST_F(QuotasTest, WhatWasDeletedMakesRoom) {
  for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(Put(key).ok());
  WriteBatch batch;
  batch.Delete("b", kSmall);
  EXPECT_TRUE(parts_.Submit(&batch).ok());
  EXPECT_TRUE(Put("d").ok());
  EXPECT_TRUE(IsNamespaceFull(Put("e")));
}

TEST_F(QuotasTest, AWholeBatchIsRefusedOrAccepted) {
  WriteBatch batch;
  for (const char* key : {"a", "b", "c", "d"}) batch.Put(key, "1", kSmall);
  EXPECT_TRUE(IsNamespaceFull(quotas_.Submit({}, &batch).status()));
  EXPECT_EQ(parts_.counter().CountNamespace(kSmall)->counts.keys, 0);
}

}  // namespace
}  // namespace varve
