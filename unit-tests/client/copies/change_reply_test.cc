#include "client/copies/change_reply.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace varve {
namespace {

Reply Integer(int64_t value) {
  Reply reply;
  reply.type = Reply::Type::kInteger;
  reply.integer = value;
  return reply;
}
Reply Bulk(std::string text) {
  Reply reply;
  reply.type = Reply::Type::kBulk;
  reply.text = std::move(text);
  return reply;
}
Reply Array(std::vector<Reply> elements) {
  Reply reply;
  reply.type = Reply::Type::kArray;
  reply.elements = std::move(elements);
  return reply;
}
Reply Operation(const std::string& word) {
  return Array({Bulk(word), Bulk("5"), Bulk("k"), Bulk("v"), Integer(9), Bulk(""), Bulk("meta"),
                Integer(5)});
}
Reply Changes(Reply operation) {
  return Array({Integer(-2), Integer(12), Integer(3),
                Array({Array({Integer(11), Integer(5000), Array({std::move(operation)})})})});
}

TEST(ChangeReplyTest, EachFieldIsRead) {
  const auto reply = ParseChangeReply(Changes(Operation("set")));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->history_id, ~uint64_t{1});
  EXPECT_EQ(reply->next, 12u);
  EXPECT_EQ(reply->first, 3u);
  ASSERT_EQ(reply->commits.size(), 1u);
  EXPECT_EQ(reply->commits[0].version, 11u);
  EXPECT_EQ(reply->commits[0].instant_ms, 5000u);
  const ChangeOperation& operation = reply->commits[0].operations.at(0);
  EXPECT_EQ(operation.kind, ChangeOperation::Kind::kSet);
  EXPECT_EQ(operation.space, 5u);
  EXPECT_EQ(operation.name, "5");
  EXPECT_EQ(operation.key, "k");
  EXPECT_EQ(operation.value, "v");
  EXPECT_EQ(operation.metadata, "meta");
  EXPECT_EQ(operation.expiry_ms, 9u);
}

TEST(ChangeReplyTest, EachKindHasItsWord) {
  const std::vector<std::string> words = {"set",      "del",   "expire", "expired", "evicted",
                                          "delrange", "flush", "ingest", "create",  "drop",
                                          "swap",     "clone", "meta"};
  for (size_t i = 0; i < words.size(); ++i) {
    const auto reply = ParseChangeReply(Changes(Operation(words[i])));
    ASSERT_TRUE(reply.ok()) << words[i];
    EXPECT_EQ(static_cast<size_t>(reply->commits[0].operations[0].kind), i);
  }
}

TEST(ChangeReplyTest, WhatMakesNoSenseIsRefused) {
  EXPECT_TRUE(absl::IsDataLoss(ParseChangeReply(Bulk("x")).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseChangeReply(Array({})).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseChangeReply(Changes(Operation("invented"))).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseChangeReply(Changes(Bulk("set"))).status()));
  // As a server answers that does not know FULL.
  Reply shorter = Operation("set");
  shorter.elements.resize(6);
  EXPECT_TRUE(absl::IsDataLoss(ParseChangeReply(Changes(std::move(shorter))).status()));
}

}  // namespace
}  // namespace varve
