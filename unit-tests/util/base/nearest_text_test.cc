// Which name a slip of the finger is taken for.
#include "util/base/nearest_text.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

constexpr std::string_view kNames[] = {"port", "bind", "maxclients", "write-buffer-size"};

TEST(NearestTextTest, ASlipIsFound) {
  EXPECT_EQ(NearestText("maxclient", kNames), "maxclients");
  EXPECT_EQ(NearestText("max-clients", kNames), "maxclients");
  EXPECT_EQ(NearestText("prot", kNames), "port");
  EXPECT_EQ(NearestText("write_buffer_size", kNames), "write-buffer-size");
  EXPECT_EQ(NearestText("port", kNames), "port");
}

TEST(NearestTextTest, WhatIsFarFromAllIsTakenForNone) {
  EXPECT_EQ(NearestText("replicaof", kNames), "");
  EXPECT_EQ(NearestText("", kNames), "");
  EXPECT_EQ(NearestText("x", kNames), "");
  EXPECT_EQ(NearestText(std::string(100000, 'p'), kNames), "");
}

}  // namespace
}  // namespace varve
