#include "server/clients/login_guard.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LoginGuard::Time kStart{seconds(1000)};

TEST(LoginGuardTest, AFewWrongPasswordsAreFree) {
  LoginGuard guard;
  for (uint32_t i = 0; i < LoginGuard::kFree; ++i) {
    EXPECT_EQ(guard.Delay("10.0.0.5:4000", kStart), milliseconds(0)) << i;
    guard.Failed("10.0.0.5:" + std::to_string(4000 + i), kStart);
  }
  EXPECT_EQ(guard.Delay("10.0.0.5:9999", kStart), LoginGuard::kDelay);
  EXPECT_EQ(guard.Delay("10.0.0.6:9999", kStart), milliseconds(0)) << "another machine";
}

TEST(LoginGuardTest, TheFirstAndTheLastFreeOneAreReported) {
  LoginGuard guard;
  EXPECT_EQ(guard.Failed("10.0.0.5:1", kStart), LoginGuard::Report::kFirst);
  for (uint32_t i = 2; i < LoginGuard::kFree; ++i) {
    EXPECT_EQ(guard.Failed("10.0.0.5:1", kStart), LoginGuard::Report::kNothing) << i;
  }
  EXPECT_EQ(guard.Failed("10.0.0.5:1", kStart), LoginGuard::Report::kMany);
  EXPECT_EQ(guard.Failed("10.0.0.5:1", kStart), LoginGuard::Report::kNothing);
}

TEST(LoginGuardTest, AnAddressIsFreeAMinuteAfterItsLastWrongPassword) {
  LoginGuard guard;
  for (uint32_t i = 0; i < 2 * LoginGuard::kMostRemembered; ++i) guard.Failed("/run/s:0", kStart);
  const uint32_t until_free = LoginGuard::kMostRemembered - LoginGuard::kFree;
  EXPECT_EQ(guard.Delay("/run/s:0", kStart + seconds(until_free)), LoginGuard::kDelay);
  EXPECT_EQ(guard.Delay("/run/s:0", kStart + seconds(until_free + 1)), milliseconds(0));
  EXPECT_EQ(guard.Failed("/run/s:0", kStart + seconds(LoginGuard::kMostRemembered)),
            LoginGuard::Report::kFirst);
}

TEST(LoginGuardTest, ManyAddressesAreForgottenTogether) {
  LoginGuard guard;
  for (size_t i = 0; i <= LoginGuard::kMostAddresses; ++i) {
    for (uint32_t j = 0; j < LoginGuard::kFree; ++j) {
      guard.Failed("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ":1",
                   kStart);
    }
  }
  EXPECT_EQ(guard.Delay("10.0.0.0:1", kStart), milliseconds(0));
}

TEST(LoginGuardTest, AnAddressOfIPv6IsItsNetwork) {
  EXPECT_EQ(NetworkOf("[2001:db8::1]:4000"), NetworkOf("[2001:db8::ffff]:80"));
  EXPECT_NE(NetworkOf("[2001:db8::1]:4000"), NetworkOf("[2001:db9::1]:4000"));
  EXPECT_EQ(NetworkOf("10.0.0.5:4000"), "10.0.0.5");
  EXPECT_EQ(NetworkOf("/run/varve.sock:0"), "/run/varve.sock");
}

}  // namespace
}  // namespace varve
