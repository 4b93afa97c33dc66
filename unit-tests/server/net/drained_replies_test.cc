// Replies that wait for followers while the server stops: a follower drops them, as nobody answers
// for them any more.
#include <gtest/gtest.h>

#include <string>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/log_lines.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;

constexpr char kNobody[] = "1";  // a port on which nothing listens

ServerOptions WaitsForOneFollower() {
  ServerOptions options;
  options.replication.sync_followers = 1;
  options.threads = 1;
  // Far longer than a stop takes that waits for nobody.
  options.drain_timeout = std::chrono::minutes(1);
  return options;
}

class DrainedRepliesTest : public ::testing::Test {
 protected:
  // Returns once the write of the connection is in the store, while its reply waits for a follower.
  void Write(RawConnection& writer) {
    ASSERT_TRUE(writer.Send(Resp({"SET", "k", "v"})));
    ASSERT_TRUE(testing::Eventually([&] { return Version() > kNoSequence; }));
  }
  SequenceNumber Version() { return ReplicationOf(&server_.store())->Identity().newest; }
  // Returns how often a stop cut connections, as its time was over. Requires: the server stopped.
  size_t Cuts() const { return lines_.Count("their connections are cut"); }

  const testing::LogLines lines_;
  testing::TestServer server_{WaitsForOneFollower()};
};

TEST_F(DrainedRepliesTest, AFollowerThatStopsDropsTheRepliesThatWaitInVain) {
  RawConnection writer(server_.port());
  Write(writer);
  EXPECT_EQ(testing::Ask(*server_.Connect(), {"REPLICAOF", "127.0.0.1", kNobody}), "OK");
  server_.Stop();
  EXPECT_EQ(writer.ReceiveAll(), "") << "nobody said that a follower has the write";
  EXPECT_TRUE(writer.closed());
  EXPECT_EQ(Cuts(), 0u) << "the stop waited for the reply until its time was over";
}

}  // namespace
}  // namespace varve
