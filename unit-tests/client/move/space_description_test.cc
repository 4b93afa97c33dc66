#include "client/move/space_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace varve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Reply Text(std::string text) { return {.type = Reply::Type::kBulk, .text = std::move(text)}; }
Reply Number(int64_t number) { return {.type = Reply::Type::kInteger, .integer = number}; }
Reply Map(std::vector<Reply> fields) {
  return {.type = Reply::Type::kArray, .elements = std::move(fields)};
}

TEST(SpaceDescriptionTest, WhatIsAsUsualIsNoOption) {
  const absl::StatusOr<SpaceDescription> read = ParseSpaceInfo(Map({Text("name"),
                                                                    Text("users"),
                                                                    Text("keys"),
                                                                    Number(9),
                                                                    Text("maxkeys"),
                                                                    Number(0),
                                                                    Text("default_expiry_ms"),
                                                                    Number(0),
                                                                    Text("sync"),
                                                                    Text("default"),
                                                                    Text("keep"),
                                                                    Text("default"),
                                                                    Text("compress"),
                                                                    Text("default"),
                                                                    Text("evict"),
                                                                    Text("none"),
                                                                    Text("evictable"),
                                                                    Text("all"),
                                                                    Text("together"),
                                                                    Text("no"),
                                                                    Text("group"),
                                                                    Text("")}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->grouping, "");
  EXPECT_EQ(read->usual_expiry_ms, 0U);
  EXPECT_THAT(read->options, IsEmpty());
}

TEST(SpaceDescriptionTest, OptionsThatBelongTogetherAreSetTogether) {
  const absl::StatusOr<SpaceDescription> read = ParseSpaceInfo(Map({Text("maxkeys"),
                                                                    Number(5),
                                                                    Text("maxbytes"),
                                                                    Number(1024),
                                                                    Text("default_expiry_ms"),
                                                                    Number(60000),
                                                                    Text("value_separation_size"),
                                                                    Number(4096),
                                                                    Text("sync"),
                                                                    Text("everysec"),
                                                                    Text("keep"),
                                                                    Text("1d"),
                                                                    Text("keep_bytes"),
                                                                    Number(77),
                                                                    Text("compress"),
                                                                    Text("zstd:3"),
                                                                    Text("evict"),
                                                                    Text("lru"),
                                                                    Text("evictable"),
                                                                    Text("volatile"),
                                                                    Text("together"),
                                                                    Text("no"),
                                                                    Text("group"),
                                                                    Text(":")}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->grouping, ":");
  EXPECT_EQ(read->usual_expiry_ms, 60000U);
  std::vector<std::vector<std::string>> storage, meaning, quota;
  for (const SpaceOptions& options : read->options) {
    (options.kind == SpaceOptions::Kind::kStorage   ? storage
     : options.kind == SpaceOptions::Kind::kMeaning ? meaning
                                                    : quota)
        .push_back(options.words);
  }
  EXPECT_THAT(storage,
              ElementsAre(ElementsAre("SYNC", "everysec"), ElementsAre("COMPRESS", "zstd:3"),
                          ElementsAre("VALUESIZE", "4096")));
  EXPECT_THAT(meaning, ElementsAre(ElementsAre("KEEP", "1d", "KEEPBYTES", "77")));
  EXPECT_THAT(quota, ElementsAre(ElementsAre("MAXKEYS", "5", "MAXBYTES", "1024", "EVICT", "lru",
                                             "EVICTABLE", "volatile")));
}

TEST(SpaceDescriptionTest, AnOlderServerHasNoGroups) {
  const absl::StatusOr<SpaceDescription> read = ParseSpaceInfo(Map({Text("maxkeys"), Number(3)}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->grouping, "");
  ASSERT_EQ(read->options.size(), 1U);
  EXPECT_THAT(read->options[0].words, ElementsAre("MAXKEYS", "3"));
}

TEST(SpaceDescriptionTest, AReplyOfAnotherFormMakesNoSense) {
  EXPECT_TRUE(absl::IsDataLoss(ParseSpaceInfo(Text("OK")).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseSpaceInfo(Map({Text("name")})).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseSpaceInfo(Map({})).status()));
}

}  // namespace
}  // namespace varve
