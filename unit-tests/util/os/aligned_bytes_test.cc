#include "util/os/aligned_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace varve {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

bool IsAligned(const AlignedBytes& bytes, size_t alignment) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0;
}

TEST(AlignedBytesTest, SmallOnesTakeWhatTheyHold) {
  EXPECT_EQ(AlignedBytes().data(), nullptr);
  EXPECT_EQ(AlignedBytes().capacity(), 0u);
  for (const size_t size : {size_t{1}, size_t{64}, size_t{100'000}, kHugePage / 4 * 3 - 1}) {
    const AlignedBytes bytes(size);
    EXPECT_EQ(bytes.size(), size);
    EXPECT_EQ(bytes.capacity(), size);
    EXPECT_TRUE(IsAligned(bytes, AlignedBytes::kSmallAlignment));
    std::memset(bytes.data(), 1, bytes.capacity());
  }
}

TEST(AlignedBytesTest, LargeOnesTakeHugePagesWhereLittleOfThemIsLeft) {
  for (const auto& [size, capacity] : std::vector<std::pair<size_t, size_t>>{
           {kHugePage / 4 * 3, kHugePage},
           {kHugePage, kHugePage},
           {kHugePage + 1, kHugePage + 1},
           {2 * kHugePage - 1000, 2 * kHugePage},
       }) {
    AlignedBytes bytes(size);
    EXPECT_EQ(bytes.size(), size);
    EXPECT_EQ(bytes.capacity(), capacity);
    EXPECT_TRUE(IsAligned(bytes, kHugePage));
    std::memset(bytes.data(), 1, bytes.capacity());
    // And freed as it was taken, which AddressSanitizer watches.
    const AlignedBytes moved = std::move(bytes);
    EXPECT_TRUE(IsAligned(moved, kHugePage));
  }
}

}  // namespace
}  // namespace varve
