#include "server/net/recent_clients.h"

#include <gtest/gtest.h>

#include <vector>

namespace varve {
namespace {

struct Client {};
using Recent = RecentClients<Client>;

class RecentClientsTest : public ::testing::Test {
 protected:
  void Serve(std::vector<int> round, uint32_t times = 1) {
    std::vector<Client*> clients;
    for (const int client : round) clients.push_back(&clients_[client]);
    for (uint32_t i = 0; i < times; ++i) recent_.Served(clients);
  }
  Client clients_[4];
  Recent recent_;
};

TEST_F(RecentClientsTest, OneAloneIsOneOnlyAfterSomeRounds) {
  Serve({0}, Recent::kRounds - 1);
  EXPECT_FALSE(recent_.one());
  Serve({0}, 2);
  EXPECT_TRUE(recent_.one());
  EXPECT_TRUE(recent_.at_most_two());
}

TEST_F(RecentClientsTest, TheSecondEndsOneButNotTwo) {
  Serve({0}, 2 * Recent::kRounds);
  Serve({1});
  EXPECT_FALSE(recent_.one());
  for (uint32_t i = 0; i < Recent::kRounds; ++i) {
    Serve({0});
    Serve({1});
  }
  EXPECT_FALSE(recent_.one());
  EXPECT_TRUE(recent_.at_most_two());
  Serve({0, 1}, Recent::kRounds);
  EXPECT_FALSE(recent_.one());
  EXPECT_TRUE(recent_.at_most_two());
}

TEST_F(RecentClientsTest, TheThirdEndsBoth) {
  Serve({0, 1}, 2 * Recent::kRounds);
  EXPECT_TRUE(recent_.at_most_two());
  Serve({2});
  EXPECT_FALSE(recent_.at_most_two());
  Serve({0, 2}, 2 * Recent::kRounds);
  EXPECT_TRUE(recent_.at_most_two());
  Serve({0, 1, 2});
  EXPECT_FALSE(recent_.at_most_two());
}

}  // namespace
}  // namespace varve
