#include "db/engine/async_writes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit-tests/db/engine/engine_parts.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::EngineParts;
using testing::Eventually;

// Notes in which order writes end, and how.
class AsyncWritesTest : public ::testing::Test {
 protected:
  AsyncWrites::Done Note(const std::string& name) {
    return [this, name](const absl::StatusOr<CommitResult>& result) {
      if (result.ok()) {
        EXPECT_TRUE(result->durable_after == kNoSequence ||
                    parts_.log()->durable_sequence() >= result->durable_after)
            << name << " ended before it was durable";
      }
      ended_.push_back(name +
                       (result.ok() ? "" : " " + StatusCodeToString(result.status().code())));
    };
  }
  // Commits by a pipeline whose log nobody waits for.
  void Put(const std::string& key) {
    writes_.Write([&] { return parts_.Put(key, "value"); }, Note(key));
  }

  EngineParts parts_;
  AsyncWrites writes_{&parts_.log()};
  std::vector<std::string> ended_;
};

TEST_F(AsyncWritesTest, AWriteEndsOnceWhenItIsDurable) {
  Put("a");
  ASSERT_TRUE(parts_.log()->Sync().ok());
  writes_.Complete();
  EXPECT_EQ(ended_, std::vector<std::string>{"a"});
  writes_.Complete();
  EXPECT_EQ(ended_.size(), 1u);
}

TEST_F(AsyncWritesTest, TheLogItselfEndsThemThroughItsListener) {
  std::atomic<bool> ended{false};
  const uint64_t token = parts_.log()->AddListener([this] { writes_.Complete(); });
  writes_.Write([&] { return parts_.Put("a", "value"); },
                [&](const absl::StatusOr<CommitResult>& result) {
                  EXPECT_TRUE(result.ok()) << result.status();
                  ended = true;
                });
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
  parts_.log()->RemoveListener(token);
}

TEST_F(AsyncWritesTest, WritesEndInTheOrderOfTheirSequences) {
  const auto claim = [](SequenceNumber sequence) {
    return [sequence]() -> absl::StatusOr<CommitResult> {
      return CommitResult{sequence, sequence};
    };
  };
  writes_.Write(claim(3), Note("third"));
  writes_.Write(claim(2), Note("second"));
  writes_.Write(claim(100), Note("later"));
  writes_.Complete();
  EXPECT_TRUE(ended_.empty()) << "nothing is durable";
  for (const char* key : {"x", "y", "z"}) ASSERT_TRUE(parts_.Put(key, "value").ok());
  ASSERT_TRUE(parts_.log()->Sync().ok());
  writes_.Complete();
  EXPECT_EQ(ended_, (std::vector<std::string>{"second", "third"}));
}

TEST_F(AsyncWritesTest, AWriteThatNeedsNoSyncEndsAtOnce) {
  parts_.pipeline().SetSync(Durability::kNone);
  Put("a");
  EXPECT_EQ(ended_, std::vector<std::string>{"a"});
}

TEST_F(AsyncWritesTest, ARefusedWriteEndsWithItsStatus) {
  writes_.Write([]() -> absl::StatusOr<CommitResult> { return absl::AbortedError("lost a race"); },
                Note("a"));
  EXPECT_EQ(ended_, std::vector<std::string>{"a ABORTED"});
}

TEST_F(AsyncWritesTest, AFailedLogEndsWhatIsNotDurable) {
  Put("a");
  ASSERT_TRUE(parts_.log()->Sync().ok());
  writes_.Complete();
  parts_.FailLog();
  Put("b");
  EXPECT_FALSE(parts_.log()->Sync().ok());
  writes_.Complete();
  EXPECT_EQ(ended_, (std::vector<std::string>{"a", "b UNAVAILABLE"}));
}

}  // namespace
}  // namespace varve
