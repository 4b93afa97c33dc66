#include "structure/slab_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

constexpr size_t kSlabSize = SlabAllocator::kSlabSize;

TEST(SlabAllocatorTest, SlotsAreAtMostAnEighthLargerThanWhatLiesInThem) {
  for (size_t size = SlabAllocator::kSmallest + 1; size <= SlabAllocator::kLargest; ++size) {
    ASSERT_TRUE(SlabAllocator::Fits(size));
    const size_t slot = SlabAllocator::SlotSizeFor(size);
    ASSERT_GE(slot, size);
    ASSERT_LE(slot - size, size / 8) << size;
    ASSERT_EQ(slot % 64, 0u);
  }
  EXPECT_FALSE(SlabAllocator::Fits(SlabAllocator::kSmallest));
  EXPECT_FALSE(SlabAllocator::Fits(SlabAllocator::kLargest + 1));
}

TEST(SlabAllocatorTest, PiecesDontOverlapWhateverComesAndGoes) {
  SlabAllocator allocator;
  struct Piece {
    char* bytes;
    size_t size;
    char filled_with;
  };
  std::vector<Piece> pieces;
  std::mt19937 random(5);
  const auto check_and_free = [&](Piece piece) {
    for (size_t i = 0; i < piece.size; i += 61) ASSERT_EQ(piece.bytes[i], piece.filled_with);
    allocator.Free(piece.bytes);
  };
  for (int i = 0; i < 20000; ++i) {
    if (pieces.size() > 1000 && random() % 2 == 0) {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      check_and_free(pieces.back());
      pieces.pop_back();
    }
    const size_t size = SlabAllocator::kSmallest + 1 +
                        random() % (SlabAllocator::kLargest - SlabAllocator::kSmallest);
    const Piece piece{static_cast<char*>(allocator.Allocate(size)), size, static_cast<char>(i)};
    ASSERT_EQ(reinterpret_cast<uintptr_t>(piece.bytes) % 64, 0u);
    std::memset(piece.bytes, piece.filled_with, size);
    pieces.push_back(piece);
  }
  for (const Piece& piece : pieces) check_and_free(piece);
  EXPECT_EQ(allocator.held(), 0u);
  EXPECT_EQ(allocator.unused(), 0u);
}

TEST(SlabAllocatorTest, WhatCameFreeIsGivenOutAgain) {
  SlabAllocator allocator;
  std::vector<void*> pieces;
  for (int i = 0; i < 3000; ++i) pieces.push_back(allocator.Allocate(4200));
  const size_t held = allocator.held();
  EXPECT_GE(held, 3000 * SlabAllocator::SlotSizeFor(4200));
  EXPECT_LE(held, 3000 * SlabAllocator::SlotSizeFor(4200) * 101 / 100 + kSlabSize);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = round % 3; i < pieces.size(); i += 3) allocator.Free(pieces[i]);
    for (size_t i = round % 3; i < pieces.size(); i += 3) pieces[i] = allocator.Allocate(4200);
  }
  EXPECT_EQ(allocator.held(), held);
  for (void* piece : pieces) allocator.Free(piece);
}

TEST(SlabAllocatorTest, AnotherThreadMayFree) {
  SlabAllocator allocator;
  for (int round = 0; round < 5; ++round) {
    std::vector<void*> pieces[2];
    std::thread threads[2];
    for (int i = 0; i < 2; ++i) {
      threads[i] = std::thread([&, i] {
        for (int j = 0; j < 2000; ++j) pieces[i].push_back(allocator.Allocate(2000 + j));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 2; ++i) {
      threads[i] = std::thread([&, i] {
        for (void* piece : pieces[1 - i]) allocator.Free(piece);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(allocator.held(), 0u);
}

// Once the thread has done its work.
bool ComesToKeep(const SlabAllocator& allocator, size_t slabs) {
  return testing::Eventually([&] { return allocator.kept() == slabs * kSlabSize; });
}

TEST(SlabAllocatorTest, FreeSlabsKeepTheirMemoryWithinTheBudgetAndOneIsMadeAhead) {
  SlabAllocator allocator(absl::Hours(1));
  constexpr size_t kSize = 4200;
  std::vector<void*> pieces;
  const auto fill_up_to = [&](size_t slabs) {
    while (allocator.held() < slabs * kSlabSize) {
      pieces.push_back(allocator.Allocate(kSize));
      std::memset(pieces.back(), 1, kSize);
    }
  };
  const auto free_all = [&] {
    for (void* piece : pieces) allocator.Free(piece);
    pieces.clear();
  };
  fill_up_to(4);
  free_all();
  EXPECT_EQ(allocator.kept(), 0u);
  allocator.AddToBudget(6 * kSlabSize);
  fill_up_to(4);
  EXPECT_TRUE(ComesToKeep(allocator, 1));
  free_all();
  EXPECT_TRUE(ComesToKeep(allocator, 5));
  // They are the next ones, also of another size.
  void* const other = allocator.Allocate(9000);
  EXPECT_EQ(allocator.kept(), 4 * kSlabSize);
  fill_up_to(5);
  EXPECT_TRUE(ComesToKeep(allocator, 1));
  // Those in use count, too: beyond the budget nothing is made ahead, and what comes free is given
  // back.
  fill_up_to(9);
  EXPECT_EQ(allocator.kept(), 0u);
  free_all();
  EXPECT_EQ(allocator.kept(), 5 * kSlabSize);
  // And what lies outside.
  void* const outside = allocator.AllocateOutside(3 * kSlabSize);
  EXPECT_EQ(allocator.kept(), 2 * kSlabSize);
  fill_up_to(3);
  free_all();
  EXPECT_EQ(allocator.kept(), 2 * kSlabSize);
  allocator.FreeOutside(outside, 3 * kSlabSize);
  allocator.TakeFromBudget(5 * kSlabSize);
  EXPECT_EQ(allocator.kept(), 0u);
  allocator.Free(other);
  EXPECT_EQ(allocator.held() + allocator.kept(), kSlabSize);
  allocator.TakeFromBudget(kSlabSize);
  EXPECT_EQ(allocator.kept(), 0u);
}

TEST(SlabAllocatorTest, WithoutNewSlabsFreeOnesGiveTheirMemoryBack) {
  SlabAllocator allocator(absl::Seconds(1));
  allocator.AddToBudget(10 * kSlabSize);
  void* const piece = allocator.Allocate(4200);
  EXPECT_TRUE(ComesToKeep(allocator, 1));
  allocator.Free(piece);
  EXPECT_TRUE(ComesToKeep(allocator, 0));
}

TEST(SlabAllocatorTest, TellsWhatLiesUnused) {
  SlabAllocator allocator;
  std::vector<void*> pieces;
  while (allocator.held() < 20 * kSlabSize || allocator.unused() > kSlabSize / 2)
    pieces.push_back(allocator.Allocate(4200));
  // A piece in each slab holds all of it, and another size has no use for the rest.
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i % 100 != 0) allocator.Free(pieces[i]);
  }
  EXPECT_GT(allocator.unused(), 18 * kSlabSize);
  const size_t held = allocator.held();
  void* const other = allocator.Allocate(10000);
  EXPECT_EQ(allocator.held(), held + kSlabSize);
  allocator.Free(other);
  for (size_t i = 0; i < pieces.size(); i += 100) allocator.Free(pieces[i]);
  EXPECT_EQ(allocator.held(), 0u);
}

}  // namespace
}  // namespace varve
