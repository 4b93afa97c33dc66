#include "structure/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace varve {
namespace {

TEST(ArenaTest, PiecesAreAlignedAndDoNotOverlap) {
  Arena arena(4096);
  std::vector<std::pair<char*, size_t>> pieces;
  for (size_t i = 0; i < 2000; ++i) {
    const size_t size = 1 + i * 37 % 3000;
    char* piece = arena.Allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 8, 0u);
    std::memset(piece, static_cast<int>(i & 0xff), size);
    pieces.emplace_back(piece, size);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [piece, size] = pieces[i];
    for (size_t j = 0; j < size; ++j) ASSERT_EQ(static_cast<unsigned char>(piece[j]), i & 0xff);
  }
}

TEST(ArenaTest, LargePiecesCostTheirSizeOnly) {
  Arena arena(4096);
  arena.Allocate(100000);
  EXPECT_EQ(arena.bytes_used(), 100000u);
  arena.Allocate(8);
  EXPECT_EQ(arena.bytes_used(), 104096u);
}

// What is charged can be used up: a write buffer is full when its memory is.
TEST(ArenaTest, RestsOfHugePagesAreGivenOut) {
  constexpr size_t kChunk = (size_t{2} << 20) - (200u << 10);
  Arena arena(kChunk);
  size_t given = 0;
  for (; given == 0 || arena.bytes_used() == size_t{2} << 20; given += 1024) {
    ASSERT_LE(given, arena.bytes_used());
    std::memset(arena.Allocate(1024), 1, 1024);
  }
  EXPECT_EQ(given, (size_t{2} << 20) + 1024) << "the last one began a chunk";
}

}  // namespace
}  // namespace varve
