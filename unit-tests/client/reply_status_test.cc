#include "client/reply_status.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

absl::StatusCode CodeOf(const std::string& error) {
  Reply reply;
  reply.type = Reply::Type::kError;
  reply.text = error;
  const absl::Status status = StatusOf(reply);
  EXPECT_EQ(std::string(status.message()), error);
  return status.code();
}

TEST(ReplyStatusTest, EachErrorHasItsCodeAndItsWords) {
  EXPECT_EQ(CodeOf("DATALOSS a file is damaged"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf("MISCONF the disk is full"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf("NOAUTH Authentication required."), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CodeOf("NOPERM no right"), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(CodeOf("UNAVAILABLE the cluster has not answered within 30 s"),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOf("CROSSGROUP keys 'a' and 'b' are not of one group"),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf("ERR syntax error"), absl::StatusCode::kFailedPrecondition);
}

TEST(ReplyStatusTest, WhatIsNoErrorIsOk) { EXPECT_EQ(StatusOf(Reply()), absl::OkStatus()); }

}  // namespace
}  // namespace varve
