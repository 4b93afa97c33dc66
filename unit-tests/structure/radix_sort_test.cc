#include "structure/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace varve {
namespace {

struct Item {
  uint64_t word;
  size_t index;
};

// The order of std::stable_sort, whichever bytes the words differ in.
TEST(RadixSortTest, SortsStably) {
  std::mt19937_64 random(1);
  for (const uint64_t mask : {~uint64_t{0}, uint64_t{0}, uint64_t{0xff}, uint64_t{0xf0} << 56,
                              uint64_t{0x0f00f00f00f0}}) {
    for (const size_t size : {0u, 1u, 2u, 1000u, 5000u}) {
      std::vector<Item> items;
      for (size_t i = 0; i < size; ++i) items.push_back({(random() & mask) | 0x3000, i});
      std::vector<Item> expected = items;
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Item& a, const Item& b) { return a.word < b.word; });
      RadixSort(&items);
      for (size_t i = 0; i < size; ++i)
        ASSERT_EQ(items[i].index, expected[i].index) << mask << ", " << size;
    }
  }
}

}  // namespace
}  // namespace varve
