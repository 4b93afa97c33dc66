#include "db/hbase/space_catalog.h"

#include <gtest/gtest.h>

#include <string>

#include "varve/namespace_status.h"

namespace varve {
namespace {

TEST(SpaceCatalogTest, ANewCatalogHasTheDefaultNamespace) {
  const SpaceCatalog catalog = SpaceCatalog::New();
  ASSERT_NE(catalog.Find(kDefaultNamespace), nullptr);
  EXPECT_EQ(catalog.Find(1), nullptr);
  EXPECT_EQ(catalog.List().next_id, kFirstNamedNamespace);
}

TEST(SpaceCatalogTest, ACatalogIsReadAsItWasWritten) {
  SpaceCatalog catalog = SpaceCatalog::New();
  ASSERT_TRUE(catalog.Create({.id = 4, .options = {.grouping = KeyGrouping::By(':')}}).ok());
  ASSERT_TRUE(
      catalog
          .Create({.id = kFirstNamedNamespace,
                   .name = "orders",
                   .options = {.default_expiry_ms = 9, .grouping = KeyGrouping::Together()}})
          .ok());
  ASSERT_TRUE(catalog.Clear(4).ok());
  const absl::StatusOr<SpaceCatalog> read = SpaceCatalog::Decode(catalog.Encode());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->List().namespaces, catalog.List().namespaces);
  EXPECT_EQ(read->List().next_id, kFirstNamedNamespace + 1);
  EXPECT_EQ(read->retired(), catalog.retired());
  EXPECT_EQ(read->Find(4)->place(), catalog.Find(4)->place());
  const std::string bytes = catalog.Encode();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(SpaceCatalog::Decode(bytes.substr(0, size)).status())) << size;
}

TEST(SpaceCatalogTest, NoPlaceIsGivenTwice) {
  SpaceCatalog catalog = SpaceCatalog::New();
  const KeyPlace first = catalog.Find(kDefaultNamespace)->place();
  ASSERT_TRUE(catalog.Clear(kDefaultNamespace).ok());
  const KeyPlace second = catalog.Find(kDefaultNamespace)->place();
  EXPECT_GT(second.generation, first.generation);
  ASSERT_TRUE(catalog.Drop(kDefaultNamespace).ok());
  ASSERT_TRUE(catalog.Create({.id = kDefaultNamespace}).ok());
  EXPECT_GT(catalog.Find(kDefaultNamespace)->generation, second.generation);
  EXPECT_EQ(catalog.retired().size(), 2u);
  catalog.Forget(first);
  EXPECT_EQ(catalog.retired(), std::vector<KeyPlace>{second});
}

TEST(SpaceCatalogTest, WhatCantBeIsRefusedAndChangesNothing) {
  SpaceCatalog catalog = SpaceCatalog::New();
  const NamespaceId id = kFirstNamedNamespace;
  ASSERT_TRUE(catalog.Create({.id = id, .name = "orders"}).ok());
  const std::string before = catalog.Encode();
  EXPECT_TRUE(absl::IsAlreadyExists(catalog.Create({.id = id, .name = "x"})));
  EXPECT_TRUE(absl::IsAlreadyExists(catalog.Create({.id = id + 1, .name = "orders"})));
  EXPECT_TRUE(IsNoSuchNamespace(catalog.Drop(77)));
  EXPECT_TRUE(IsNoSuchNamespace(catalog.Clear(77)));
  EXPECT_TRUE(IsNoSuchNamespace(catalog.Alter({.id = 77})));
  EXPECT_TRUE(absl::IsFailedPrecondition(catalog.Alter(
      {.id = id, .name = "orders", .options = {.grouping = KeyGrouping::Together()}})));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      catalog.Alter({.id = id, .name = "orders", .options = {.max_keys = 5}})));
  EXPECT_EQ(catalog.Encode(), before);
}

TEST(SpaceCatalogTest, EveryGroupingHasATableOfItsOwn) {
  EXPECT_EQ(TableOf("varve", {}).name, "varve");
  const HbaseTableLayout together = TableOf("varve", KeyGrouping::Together());
  EXPECT_EQ(together.name, "varve-together");
  EXPECT_EQ(together.split, HbaseTableLayout::Split::kKeyPrefix);
  EXPECT_EQ(together.prefix_length, 4);
  const HbaseTableLayout by_colon = TableOf("varve", KeyGrouping::By(':'));
  EXPECT_EQ(by_colon.name, "varve-group-3a");
  EXPECT_EQ(by_colon.split, HbaseTableLayout::Split::kDelimited);
  EXPECT_EQ(by_colon.delimiter, ':');
}

}  // namespace
}  // namespace varve
