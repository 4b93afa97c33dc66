#include "server/access/user_limits.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

UserLimits With(std::initializer_list<std::string_view> rules) {
  UserLimits limits;
  for (const std::string_view rule : rules) {
    EXPECT_TRUE(IsLimitRule(rule)) << rule;
    const absl::Status applied = ApplyLimitRule(rule, &limits);
    EXPECT_TRUE(applied.ok()) << applied;
  }
  return limits;
}
bool Allows(const UserLimits& limits, std::string_view address) {
  return RefusalByLimits(limits, "app", address, 0).empty();
}

TEST(UserLimitsTest, RulesAreShownAsTheyWereGiven) {
  EXPECT_EQ(DescribeLimits(UserLimits()), "");
  EXPECT_EQ(DescribeLimits(With({"expires=1790000000", "CIDR=10.0.0.0/8", "maxclients=3",
                                 "cidr=fd00::/8", "cidr=10.0.0.0/8"})),
            "maxclients=3 cidr=10.0.0.0/8 cidr=fd00::/8 expires=1790000000");
  EXPECT_EQ(DescribeLimits(With({"cidr=10.0.0.1", "maxclients=3", "expires=7", "resetcidr",
                                 "maxclients=0", "expires=0"})),
            "");
}

TEST(UserLimitsTest, RulesThatMakeNoSenseSayWhatTheyTake) {
  UserLimits limits = With({"cidr=10.0.0.0/8"});
  for (const std::string_view rule : std::initializer_list<std::string_view>{
           "maxclients=", "maxclients=-1", "maxclients=1000001", "maxclients=3x",
           "expires=", "expires=-1", "expires=tomorrow", "cidr=", "cidr=10.0.0.0/33",
           "cidr=10.0.0/8", "cidr=::/129", "cidr=10.0.0.0/-1", "cidr=10.0.0.0/", "cidr=host",
           std::string_view("cidr=10.0.0.1\0x", 15)}) {
    const absl::Status applied = ApplyLimitRule(rule, &limits);
    EXPECT_TRUE(absl::IsInvalidArgument(applied)) << rule;
    EXPECT_NE(applied.message().find("takes"), absl::string_view::npos) << rule;
  }
  EXPECT_EQ(limits, With({"cidr=10.0.0.0/8"}));
  for (const std::string_view rule : {"on", "~cidr=1", "maxclients", "cidr", ""})
    EXPECT_FALSE(IsLimitRule(rule)) << rule;
}

TEST(UserLimitsTest, NetworksHoldTheirAddressesAndNoOthers) {
  const UserLimits ten = With({"cidr=10.200.0.0/13"});
  for (const char* address :
       {"10.200.0.0", "10.207.255.255:80", "[::ffff:10.201.1.1]:9", "10.203.0.1"})
    EXPECT_TRUE(Allows(ten, address)) << address;
  for (const char* address :
       {"10.199.255.255:1", "10.208.0.0:1", "[::1]:5", "::1", "[fd00::1%eth0]:7"})
    EXPECT_FALSE(Allows(ten, address)) << address;
  const UserLimits six = With({"cidr=2001:db8::/33", "cidr=fe80::1"});
  EXPECT_TRUE(Allows(six, "[2001:db8:7fff::1]:1"));
  EXPECT_FALSE(Allows(six, "[2001:db8:8000::1]:1"));
  EXPECT_TRUE(Allows(six, "[fe80::1%eth0]:1"));
  EXPECT_FALSE(Allows(six, "[fe80::2]:1"));
  EXPECT_TRUE(Allows(With({"cidr=0.0.0.0/0"}), "1.2.3.4:5"));
  EXPECT_FALSE(Allows(With({"cidr=0.0.0.0/0"}), "[::1]:5")) << "IPv4 alone";
  EXPECT_TRUE(Allows(With({"cidr=::/0"}), "1.2.3.4:5"));
}

TEST(UserLimitsTest, AUnixSocketIsThisMachine) {
  EXPECT_TRUE(Allows(With({"cidr=127.0.0.0/8"}), "/run/varve.sock:0"));
  EXPECT_FALSE(Allows(With({"cidr=10.0.0.0/8"}), "varve.sock:0"));
}

TEST(UserLimitsTest, WhoExpiresIsRefusedFromThatInstantOn) {
  const UserLimits limits = With({"expires=1000"});
  EXPECT_EQ(RefusalByLimits(limits, "app", "10.0.0.1:5", 999), "");
  EXPECT_EQ(RefusalByLimits(limits, "app", "10.0.0.1:5", 1000),
            "NOPERM the user 'app' has expired (expires=1000)");
}

TEST(UserSeatTest, SeatsAreGivenBack) {
  const auto seats = std::make_shared<std::atomic<uint32_t>>(0);
  UserSeat third;
  {
    UserSeat first, second;
    EXPECT_TRUE(first.Take(seats, 2));
    EXPECT_TRUE(first.Take(seats, 2)) << "it has one already";
    EXPECT_TRUE(second.Take(seats, 2));
    EXPECT_FALSE(third.Take(seats, 2));
    EXPECT_EQ(seats->load(), 2u);
    EXPECT_TRUE(second.Take(std::make_shared<std::atomic<uint32_t>>(0), 1));
    EXPECT_TRUE(third.Take(seats, 2));
  }
  EXPECT_EQ(seats->load(), 1u);
  third.Leave();
  EXPECT_EQ(seats->load(), 0u);
}

}  // namespace
}  // namespace varve
