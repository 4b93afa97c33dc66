#include "db/format/namespace_change.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "db/commit/commit.h"
#include "db/namespaces/namespace_table.h"
#include "db/version/manifest.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using namespace std::string_literals;

constexpr NamespaceId kUsers = kFirstNamedNamespace;

NamespaceDescription Users() {
  return {.id = kUsers,
          .name = "users",
          .options = {.max_bytes = 300,
                      .max_keys = 2,
                      .default_expiry_ms = 1000,
                      .sync = Durability::kEverySecond,
                      .value_separation_size = 4096}};
}

std::string KeyOf(NamespaceId id) { return FirstTreeKey(id); }

NamespaceChange Create(const NamespaceDescription& space, NamespaceGeneration generation) {
  return {.space = space, .generation = generation};
}
NamespaceChange Of(NamespaceChange::Verb verb, NamespaceId id, NamespaceId other = 0) {
  return {.verb = verb, .space = {.id = id}, .other = other};
}

NamespaceChange Clone(const NamespaceDescription& space, NamespaceGeneration generation,
                      NamespaceId source, SequenceNumber fork_point = kNoSequence) {
  return {.verb = NamespaceChange::Verb::kClone,
          .space = space,
          .generation = generation,
          .other = source,
          .fork_point = fork_point};
}

TEST(NamespaceChangeTest, TheBytesNeverChange) {
  EXPECT_EQ(EncodeNamespaceChange(Create(Users(), 7)),
            "\1\0\0\0\7\5users\xac\2\2\xe8\7\2\x80\x20"s);
  NamespaceChange alter = Of(NamespaceChange::Verb::kAlter, 3);
  EXPECT_EQ(EncodeNamespaceChange(alter), "\2\0\0\0\0\0\0"s);
  EXPECT_EQ(EncodeNamespaceChange(Of(NamespaceChange::Verb::kDrop, 3)), "\3"s);
  EXPECT_EQ(EncodeNamespaceChange(Of(NamespaceChange::Verb::kSwap, 3, 9)), "\4\0\0\0\11"s);
  EXPECT_EQ(EncodeNamespaceChange(Clone(Users(), 7, 9)),
            "\5\0\0\0\7\0\0\0\11\5users\xac\2\2\xe8\7\2\x80\x20"s);
}

TEST(NamespaceChangeTest, WhatComesBackIsWhatWasWrittenAndNothingElse) {
  const std::string key = KeyOf(kUsers);
  for (const NamespaceChange& change :
       {Create(Users(), 7), Of(NamespaceChange::Verb::kAlter, kUsers),
        Of(NamespaceChange::Verb::kDrop, kUsers), Of(NamespaceChange::Verb::kSwap, kUsers, 9),
        Clone(Users(), 7, 9)}) {
    const std::string value = EncodeNamespaceChange(change);
    const auto decoded = DecodeNamespaceChange({.key = key, .value = value});
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->verb, change.verb);
    EXPECT_EQ(decoded->space, change.space);
    EXPECT_EQ(decoded->generation, change.generation);
    EXPECT_EQ(decoded->other, change.other);
    for (size_t size = 0; size < value.size(); ++size) {
      EXPECT_FALSE(
          DecodeNamespaceChange({.key = key, .value = std::string_view(value).substr(0, size)}))
          << size;
    }
    EXPECT_FALSE(DecodeNamespaceChange({.key = key, .value = value + '\0'}));
    EXPECT_FALSE(DecodeNamespaceChange({.key = key + "x", .value = value}));
  }
  EXPECT_FALSE(DecodeNamespaceChange({.key = key, .value = "\5"}));
}

TEST(NamespaceChangeTest, TheBytesOfGroupsNeverChange) {
  NamespaceDescription space = Users();
  space.options.eviction = {EvictionOrder::kLru, false};
  space.options.grouping = KeyGrouping::By(':');
  EXPECT_EQ(EncodeNamespaceChange(Create(space, 7)),
            "\1\0\0\0\7\5users\xac\2\2\xe8\7\x52\x80\x20\1\2:"s);
  for (const KeyGrouping& grouping :
       {KeyGrouping::By('\0'), KeyGrouping::By('\xff'), KeyGrouping::Together(), KeyGrouping()}) {
    space.options.grouping = grouping;
    const std::string key = KeyOf(kUsers), value = EncodeNamespaceChange(Create(space, 7));
    const auto decoded = DecodeNamespaceChange({.key = key, .value = value});
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->space, space);
    EXPECT_EQ(EncodeNamespaceChange(*decoded), value);
  }
  for (const std::string& grouping : {"\0\0"s, "\1:"s, "\3:"s}) {
    EXPECT_FALSE(DecodeNamespaceChange(
        {.key = KeyOf(kUsers),
         .value = "\1\0\0\0\7\5users\xac\2\2\xe8\7\x12\x80\x20"s + grouping}));
  }
}

TEST(NamespaceChangeTest, DamagedBytesAreRefusedOrHaveOneEncoding) {
  std::mt19937 random(3);
  const std::string good = EncodeNamespaceChange(Create(Users(), 7)), key = KeyOf(kUsers);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto decoded = DecodeNamespaceChange({.key = key, .value = bytes});
    if (decoded) EXPECT_EQ(EncodeNamespaceChange(*decoded), bytes);
  }
}

TEST(NamespaceTableTest, CreatesAltersSwapsAndDrops) {
  NamespaceTable table;
  table.Set(0, 1);
  ASSERT_TRUE(table.Apply(Create({.id = 5}, 2)).ok());
  ASSERT_TRUE(table.Apply(Create(Users(), 3)).ok());
  EXPECT_TRUE(table.has_rules());
  EXPECT_EQ(table.Generation(0), 1u);
  EXPECT_EQ(table.Generation(5), 2u);
  EXPECT_EQ(table.Generation(kUsers), 3u);
  EXPECT_FALSE(table.Generation(1));
  ASSERT_NE(table.Named("users"), nullptr);
  EXPECT_EQ(*table.Named("users"), Users());
  EXPECT_EQ(table.Description(5), nullptr);

  ASSERT_TRUE(table.Apply(Of(NamespaceChange::Verb::kSwap, 0, kUsers)).ok());
  EXPECT_EQ(table.Generation(0), 3u);
  EXPECT_EQ(table.Generation(kUsers), 1u);
  EXPECT_EQ(table.Named("users")->id, kUsers) << "names stay";

  NamespaceChange alter = Of(NamespaceChange::Verb::kAlter, kUsers);
  alter.space.name = "people";
  ASSERT_TRUE(table.Apply(alter).ok());
  EXPECT_FALSE(table.has_rules());
  EXPECT_EQ(table.Named("users"), nullptr);

  const NamespaceTable before = table;
  ASSERT_TRUE(table.Apply(Of(NamespaceChange::Verb::kDrop, kUsers)).ok());
  EXPECT_FALSE(table.Generation(kUsers));
  EXPECT_EQ(table.Named("people"), nullptr);
  EXPECT_NE(before.Named("people"), nullptr) << "copies keep what they know";
  EXPECT_EQ(table.HighestGeneration(), 3u);
}

TEST(NamespaceTableTest, RefusesWhatCannotBeAndChangesNothing) {
  NamespaceTable table;
  table.Set(0, 1);
  ASSERT_TRUE(table.Apply(Create(Users(), 2)).ok());
  NamespaceDescription same_name = Users();
  same_name.id = kUsers + 1;
  EXPECT_TRUE(absl::IsAlreadyExists(table.Apply(Create(same_name, 3))));
  EXPECT_TRUE(absl::IsAlreadyExists(table.Apply(Create({.id = 0}, 3))));
  EXPECT_TRUE(absl::IsInvalidArgument(table.Apply(Create({.id = kUsers + 1}, 3)))) << "no name";
  EXPECT_TRUE(absl::IsInvalidArgument(table.Apply(Create({.id = 1, .name = "one"}, 3))))
      << "a database with a name";
  EXPECT_TRUE(absl::IsInvalidArgument(
      table.Apply(Create({.id = kUsers + 1, .name = std::string(kMaxNamespaceName + 1, 'n')}, 3))));
  EXPECT_TRUE(absl::IsInvalidArgument(table.Apply(Of(NamespaceChange::Verb::kDrop, 0))));
  for (const NamespaceChange::Verb verb :
       {NamespaceChange::Verb::kAlter, NamespaceChange::Verb::kDrop,
        NamespaceChange::Verb::kSwap}) {
    EXPECT_TRUE(IsNoSuchNamespace(table.Apply(Of(verb, 9, 0))));
  }
  EXPECT_TRUE(IsNoSuchNamespace(table.Apply(Of(NamespaceChange::Verb::kSwap, 0, 9))));
  EXPECT_EQ(table.entries().size(), 2u);

  ASSERT_TRUE(table.Apply(Of(NamespaceChange::Verb::kDrop, kUsers)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Apply(Create(Users(), 3))))
      << "an id is never given again";
  NamespaceDescription again = Users();
  again.id = table.next_named();
  EXPECT_EQ(again.id, kUsers + 1);
  EXPECT_TRUE(table.Apply(Create(again, 3)).ok());

  while (table.entries().size() < kMaxNamespaces) {
    const auto id = static_cast<NamespaceId>(table.entries().size());
    ASSERT_TRUE(table.Apply(Create({.id = id}, 10 + id)).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(table.Apply(Create({.id = 5000}, 9999))));
}

TEST(NamespaceTableTest, ComesBackFromTheManifest) {
  NamespaceTable table;
  table.Set(0, 1);
  ASSERT_TRUE(table.Apply(Create(Users(), 2)).ok());
  Manifest manifest;
  table.WriteTo(&manifest);
  const absl::StatusOr<Manifest> read = DecodeManifest(EncodeManifest(manifest), "MANIFEST");
  ASSERT_TRUE(read.ok()) << read.status();
  const NamespaceTable again(*read);
  EXPECT_EQ(again.Generation(kUsers), 2u);
  ASSERT_NE(again.Named("users"), nullptr);
  EXPECT_EQ(*again.Named("users"), Users());
  EXPECT_EQ(again.next_named(), kUsers + 1);
  EXPECT_TRUE(again.has_rules());
}

TEST(NamespaceTableTest, RemembersTheHighestGenerationAlsoOfOneThatIsGone) {
  NamespaceTable table;
  table.Set(0, 1);
  ASSERT_TRUE(table.Apply(Create(Users(), 7)).ok());
  ASSERT_TRUE(table.Apply(Of(NamespaceChange::Verb::kDrop, kUsers)).ok());
  EXPECT_EQ(table.HighestGeneration(), 7u);
}

TEST(NamespaceTableTest, WhereNoGenerationIsLeftABatchThatNeedsOneIsRefused) {
  NamespaceTable table;
  table.Set(0, 1);
  const auto none = [](NamespaceId) { return kNoGeneration; };
  WriteBatch batch;
  batch.ClearNamespace();
  EXPECT_TRUE(absl::IsResourceExhausted(Commit(&batch).Resolve(table, none)));
  batch.Clear();
  batch.CreateNamespace(Users());
  EXPECT_TRUE(absl::IsResourceExhausted(Commit(&batch).Resolve(table, none)));
}

TEST(NamespaceTableTest, OperationsOfTheLogThatMakeNoSenseAreRefused) {
  NamespaceTable table;
  table.Set(0, 1);
  const std::string key = KeyOf(0);
  for (const auto& [kind, value] : {std::pair(RecordKind::kSwitchGeneration, "\0\0"s),
                                    std::pair(RecordKind::kChangeNamespace, ""s),
                                    std::pair(RecordKind::kChangeNamespace, "\3"s)}) {
    EXPECT_TRUE(absl::IsDataLoss(table.Replay({.key = key, .value = value, .kind = kind})));
  }
  EXPECT_EQ(table.Generation(0), 1u);
}

}  // namespace
}  // namespace varve
