#include "db/hbase/guessed_versions.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace varve {
namespace {

using Name = GuessedVersions::Name;

constexpr size_t kRoom = 1'024;

Name NameOf(int row) { return GuessedVersions::NameOf("t", "row" + std::to_string(row)); }

std::optional<SequenceNumber> GuessOne(GuessedVersions& guesses, Name row) {
  return guesses.Guess({&row, 1}).front();
}

// Returns how many of so many rows, from `first` on, are guessed in one commit.
size_t GuessedTogether(GuessedVersions& guesses, int first, int count) {
  std::vector<Name> rows;
  for (int i = 0; i < count; ++i) rows.push_back(NameOf(first + i));
  size_t guessed = 0;
  for (const auto& guess : guesses.Guess(rows)) guessed += guess.has_value() ? 1 : 0;
  return guessed;
}

TEST(GuessedVersionsTest, RowsOfTwoTablesAreTwoRows) {
  EXPECT_NE(GuessedVersions::NameOf("t", "row"), GuessedVersions::NameOf("u", "row"));
  EXPECT_NE(GuessedVersions::NameOf("t", "u"), GuessedVersions::NameOf("u", "t"));
}

TEST(GuessedVersionsTest, WhatWasSeenIsGuessed) {
  GuessedVersions guesses(kRoom);
  EXPECT_EQ(GuessOne(guesses, NameOf(1)), std::nullopt);
  guesses.Note(NameOf(1), 7);
  EXPECT_EQ(GuessOne(guesses, NameOf(1)), 7u);
  guesses.Note(NameOf(1), 9);
  guesses.Note(NameOf(1), 8);  // a read that was overtaken
  guesses.Note(NameOf(1), kNoSequence);
  EXPECT_EQ(GuessOne(guesses, NameOf(1)), 9u);
  guesses.Note(NameOf(2), kNoSequence);
  EXPECT_EQ(GuessOne(guesses, NameOf(2)), kNoSequence);
  EXPECT_EQ(guesses.guesses(), 3u);
}

TEST(GuessedVersionsTest, AWrongGuessIsForgotten) {
  GuessedVersions guesses(kRoom);
  guesses.Note(NameOf(1), 9);
  guesses.TellOutcome(NameOf(1), 9, /*was_right=*/false);
  EXPECT_EQ(GuessOne(guesses, NameOf(1)), std::nullopt);
  EXPECT_EQ(guesses.wrong_guesses(), 1u);
  guesses.Note(NameOf(1), 3);
  EXPECT_EQ(GuessOne(guesses, NameOf(1)), 3u);
}

TEST(GuessedVersionsTest, UnknownRowsAreTakenForMissingOnesOnceMostOfThemWere) {
  GuessedVersions guesses(kRoom);
  for (int i = 0; i < 60; ++i) guesses.TellFound(NameOf(i), kNoSequence);
  EXPECT_EQ(GuessOne(guesses, NameOf(10'000)), std::nullopt);
  for (int i = 60; i < 600; ++i) guesses.TellFound(NameOf(i), kNoSequence);
  EXPECT_EQ(GuessOne(guesses, NameOf(10'000)), kNoSequence);
  EXPECT_EQ(GuessedTogether(guesses, 10'000, 64), 64u);
  // One that was there is one too many for a commit of many rows.
  guesses.TellOutcome(NameOf(20'000), kNoSequence, /*was_right=*/false);
  EXPECT_EQ(GuessedTogether(guesses, 10'000, 64), 0u);
  EXPECT_EQ(GuessOne(guesses, NameOf(10'000)), kNoSequence);
  for (int i = 0; i < 30; ++i) guesses.TellFound(NameOf(30'000 + i), 5);
  EXPECT_EQ(GuessOne(guesses, NameOf(10'000)), std::nullopt);
}

TEST(GuessedVersionsTest, KnownRowsAreReadWhileOthersWriteThem) {
  GuessedVersions guesses(kRoom);
  const auto note_all = [&](SequenceNumber version) {
    for (int i = 0; i < 64; ++i) guesses.Note(NameOf(i), version);
  };
  note_all(1);
  EXPECT_EQ(GuessedTogether(guesses, 0, 64), 64u);
  guesses.TellOutcome(NameOf(0), 1, /*was_right=*/false);
  note_all(1);
  EXPECT_EQ(GuessedTogether(guesses, 0, 64), 0u);
  EXPECT_EQ(GuessedTogether(guesses, 0, 4), 4u);
  // Reads show that guesses would have been right.
  for (int turn = 0; turn < 4; ++turn) {
    for (int i = 0; i < 64; ++i) guesses.TellFound(NameOf(i), 1);
  }
  EXPECT_EQ(GuessedTogether(guesses, 0, 64), 64u);
  for (int i = 0; i < 64; ++i) guesses.TellFound(NameOf(i), 2);
  EXPECT_EQ(GuessedTogether(guesses, 0, 1), 0u);
}

TEST(GuessedVersionsTest, TheRowWithTheLowestVersionMakesRoom) {
  GuessedVersions guesses(4);  // one place
  for (int i = 1; i <= 4; ++i) guesses.Note(NameOf(i), static_cast<SequenceNumber>(10 * i));
  guesses.Note(NameOf(5), 25);
  EXPECT_EQ(GuessOne(guesses, NameOf(1)), std::nullopt);
  for (int i = 2; i <= 4; ++i)
    EXPECT_EQ(GuessOne(guesses, NameOf(i)), 10u * static_cast<unsigned>(i));
  EXPECT_EQ(GuessOne(guesses, NameOf(5)), 25u);
}

TEST(GuessedVersionsTest, WithoutRoomNothingIsGuessed) {
  GuessedVersions guesses(0);
  for (int i = 0; i < 1'000; ++i) guesses.TellFound(NameOf(i), kNoSequence);
  guesses.Note(NameOf(1), 7);
  guesses.TellOutcome(NameOf(1), 7, /*was_right=*/false);
  EXPECT_EQ(GuessedTogether(guesses, 0, 64), 0u);
}

// For the sanitizers: threads that meet in one place.
TEST(GuessedVersionsTest, ThreadsMayMeet) {
  GuessedVersions guesses(4);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&guesses, thread] {
      for (int i = 0; i < 2'000; ++i) {
        const Name row = NameOf(i % 7);
        const auto guess = GuessOne(guesses, row);
        if (guess.has_value()) guesses.TellOutcome(row, *guess, i % 3 != 0);
        guesses.Note(row, static_cast<SequenceNumber>(3 * i + thread));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  guesses.Note(NameOf(100), 1u << 30);
  EXPECT_LE(guesses.wrong_guesses(), guesses.guesses());
}

}  // namespace
}  // namespace varve
