#include "server/net/handshake_turns.h"

#include <gtest/gtest.h>

#include <vector>

namespace varve {
namespace {

struct Guest {
  bool is_closed = false;
  bool closed() const { return is_closed; }
};

using Turns = HandshakeTurns<Guest>;

TEST(HandshakeTurnsTest, TheFirstGoAtOnceAndTheOthersInTheirOrder) {
  Turns turns;
  std::vector<std::shared_ptr<Guest>> guests;
  for (size_t i = 0; i < Turns::kMost + 4; ++i) {
    guests.push_back(std::make_shared<Guest>());
    EXPECT_EQ(turns.Take(guests.back()), i < Turns::kMost) << i;
  }
  EXPECT_EQ(turns.GiveBack(), guests[Turns::kMost]);
  EXPECT_TRUE(turns.Take(guests[Turns::kMost]));
  EXPECT_FALSE(turns.Take(guests[0])) << "all turns are taken again";
  guests[Turns::kMost + 1]->is_closed = true;
  guests[Turns::kMost + 2].reset();
  EXPECT_EQ(turns.GiveBack(), guests[Turns::kMost + 3]) << "those who have gone are passed over";
  EXPECT_EQ(turns.GiveBack(), guests[0]);
  EXPECT_EQ(turns.GiveBack(), nullptr);
}

}  // namespace
}  // namespace varve
