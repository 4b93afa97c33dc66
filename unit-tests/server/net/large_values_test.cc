// Values that take long to copy are handled on the pool, however few they are, so that they hold up
// nobody on the I/O thread. In each case the reply is the same as that of a small value.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/execution/execution_policy.h"
#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;

class LargeValuesTest : public testing::CommandTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Do({"SET", "large", large_}), "OK");
    ASSERT_EQ(Do({"SET", "small", "s"}), "OK");
  }
  // How many batches went to the pool meanwhile.
  uint64_t OnPool(const std::vector<std::string>& arguments) {
    const uint64_t before = server_.state().statistics.batches_pooled.load();
    Do(arguments);
    return server_.state().statistics.batches_pooled.load() - before;
  }
  void ExpectOnPool(const std::vector<std::string>& arguments, const std::string& reply) {
    const uint64_t before = server_.state().statistics.batches_pooled.load();
    EXPECT_EQ(Do(arguments), reply) << arguments[0];
    // A batch is counted once its replies are on their way.
    EXPECT_TRUE(testing::Eventually([&] {
      return server_.state().statistics.batches_pooled.load() - before == 1;
    })) << arguments[0];
  }

  const std::string large_ = std::string(kInlineInputBytes + 1, 'x');
};

TEST_F(LargeValuesTest, AreReadAndChangedOnThePool) {
  ExpectOnPool({"GET", "large"}, large_);
  ExpectOnPool({"GETRANGE", "large", "0", "1"}, "xx");
  // Its length is known without it.
  EXPECT_EQ(Do({"STRLEN", "large"}), std::to_string(large_.size()));
  EXPECT_EQ(Do({"EXISTS", "small", "large", "none"}), "2");
  ExpectOnPool({"MGET", "large", "none"}, "(" + large_ + " nil)");
  ExpectOnPool({"MGET", "small", "large"}, "(s " + large_ + ")");
  ExpectOnPool({"SETBIT", "large", "0", "0"}, "0");
  ExpectOnPool({"APPEND", "large", "y"}, std::to_string(large_.size() + 1));
  ExpectOnPool({"SETRANGE", "large", "1", "zz"}, std::to_string(large_.size() + 1));
  ExpectOnPool({"GETSET", "large", "now small"}, "xzz" + large_.substr(3) + "y");
  EXPECT_EQ(OnPool({"GET", "large"}), 0u);
}

TEST_F(LargeValuesTest, AreMadeOnThePool) {
  const std::string last_bit = std::to_string(8 * kInlineInputBytes);
  ExpectOnPool({"SETBIT", "bits", last_bit, "1"}, "0");
  ExpectOnPool({"SETRANGE", "bytes", std::to_string(kInlineInputBytes), "x"},
               std::to_string(kInlineInputBytes + 1));
  ExpectOnPool({"BITFIELD", "field", "SET", "u1", last_bit, "1"}, "(0)");
}

TEST_F(LargeValuesTest, StandAmongSmallOnesInOrder) {
  const std::string requests = Resp({"SET", "a", "1"}) + Resp({"GET", "small"}) +
                               Resp({"GET", "large"}) + Resp({"GET", "small"}) +
                               Resp({"INCR", "a"}) + Resp({"GET", "large"}) +
                               Resp({"GET", "large"}) + Resp({"STRLEN", "large"}) + Resp({"QUIT"});
  const std::string small = "$1\r\ns\r\n";
  const std::string large = "$" + std::to_string(large_.size()) + "\r\n" + large_ + "\r\n";
  RawConnection connection(server_.port());
  ASSERT_TRUE(connection.Send(requests));
  EXPECT_EQ(connection.ReceiveAll(), "+OK\r\n" + small + large + small + ":2\r\n" + large + large +
                                         ":" + std::to_string(large_.size()) + "\r\n+OK\r\n");
}

TEST_F(LargeValuesTest, DontChangeWhatSmallOnesCost) {
  const int64_t before = server_.state().key_costs.read.nanos();
  ASSERT_EQ(Do({"SETBIT", "huge", "200000000", "1"}), "0");  // 25 MB: milliseconds to read
  for (int i = 0; i < 30; ++i) ASSERT_EQ(Do({"GETRANGE", "huge", "-1", "-1"}), "\x80");
  EXPECT_LT(server_.state().key_costs.read.nanos(), before + kInlineBudgetNanos);
  EXPECT_EQ(OnPool({"GET", "small"}), 0u);
}

TEST(LargeValuesInlineTest, RunWhereTheyWereReadWhereEverythingDoes) {
  ServerOptions options;
  options.execution = Execution::kInline;
  testing::TestServer server(options);
  const std::unique_ptr<Client> client = server.Connect();
  const std::string large(kInlineInputBytes + 1, 'x');
  EXPECT_EQ(testing::Ask(*client, {"SET", "k", large}), "OK");
  EXPECT_EQ(testing::Ask(*client, {"GET", "k"}), large);
  EXPECT_EQ(testing::Ask(*client, {"MGET", "k"}), "(" + large + ")");
  EXPECT_EQ(server.state().statistics.batches_pooled.load(), 0u);
}

}  // namespace
}  // namespace varve
