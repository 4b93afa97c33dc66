// Where the lineages of two states meet.
#include "db/difference/lineage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/difference/touched_keys.h"
#include "fmt/format.h"

namespace varve {
namespace {

std::string Text(const Meeting& meeting) {
  std::string text = meeting.related ? fmt::format("{}:", meeting.shared) : "none:";
  for (const DifferingLevel& level : meeting.levels)
    text += fmt::format(" {}>{}", level.generation, level.above);
  return text;
}

// 1 has the clones 2 (at 10) and 3 (at 20), and 4 is one of 2 (at 30).
class LineageTest : public ::testing::Test {
 protected:
  std::string Meet(NamespaceGeneration a, SequenceNumber at_a, NamespaceGeneration b,
                   SequenceNumber at_b) const {
    return Text(MeetingOf(LineageOf(a, at_a, forks_), LineageOf(b, at_b, forks_)));
  }

  const NamespaceForks forks_{{{2, 1, 10}, {3, 1, 20}, {4, 2, 30}}};
};

TEST_F(LineageTest, TwoVersionsOfOneNamespaceMeetAtTheOlder) {
  EXPECT_EQ(Meet(1, 40, 1, 50), "1: 1>40");
  EXPECT_EQ(Meet(4, 50, 4, 40), "4: 4>40");
}

TEST_F(LineageTest, ACloneAndItsSourceMeetAtTheFork) {
  EXPECT_EQ(Meet(2, 50, 1, 50), "1: 2>0 1>10");
  EXPECT_EQ(Meet(1, 5, 2, 50), "1: 2>0 1>5");
  EXPECT_EQ(Meet(4, 50, 1, 50), "1: 4>0 2>0 1>10");
}

TEST_F(LineageTest, TwoClonesMeetInWhatTheyCameFrom) {
  EXPECT_EQ(Meet(2, 50, 3, 50), "1: 2>0 3>0 1>10");
  EXPECT_EQ(Meet(4, 50, 3, 50), "1: 4>0 2>0 3>0 1>10");
  EXPECT_EQ(Meet(4, 50, 2, 50), "2: 4>0 2>30");
}

TEST_F(LineageTest, StrangersShareNothing) { EXPECT_EQ(Meet(1, 50, 9, 50), "none: 1>0"); }

TEST(DisjointTest, RangesThatTouchBecomeOne) {
  const auto text = [](std::vector<UserKeyRange> ranges) {
    std::string all;
    for (const UserKeyRange& range : Disjoint(std::move(ranges)))
      all += fmt::format("[{},{}) ", range.begin, range.end);
    return all;
  };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({{"c", "d"}, {"a", "b"}}), "[a,b) [c,d) ");
  EXPECT_EQ(text({{"a", "c"}, {"b", "d"}, {"d", "e"}}), "[a,e) ");
  EXPECT_EQ(text({{"b", ""}, {"a", "c"}, {"x", "z"}}), "[a,) ");
  EXPECT_EQ(text({{"a", "z"}, {"b", "c"}, {"c", "d"}}), "[a,z) ");
}

}  // namespace
}  // namespace varve
