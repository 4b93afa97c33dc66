// The guessed versions are what this server believes rows of HBase to hold: the version that it
// last saw in a row or wrote into it, or that there is no row. A write that wants no particular
// version takes such a guess for the condition of its commit and saves the read before it. The
// cluster compares: a guess that is wrong costs a commit that writes nothing, and never a wrong
// version.
//
// They also say whether to guess at all. Of rows that are known and of rows that nothing is known
// of, which are taken for missing ones, the table keeps how often guesses went wrong of late, or
// would have. The rows of one commit succeed together, so it guesses only if hardly any of its
// guesses is expected to be wrong: new keys are written without a read, and so are keys that this
// server alone writes, in commits of any size.
//
// The table has a fixed size; of the rows that share a place, those with the lowest versions go
// first.
//
// Thread-safety: All functions are thread-safe; they take no lock. Threads that meet in one place
// may lose what one of them noted, or mix two notes up: both make a wrong guess at worst.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "varve/types.h"

namespace varve {

class GuessedVersions {
 public:
  // A hash of table and row stands for a row.
  using Name = uint64_t;
  static Name NameOf(std::string_view table, std::string_view row);

  // Room for about so many rows, of 16 bytes each. 0: it never guesses.
  explicit GuessedVersions(size_t rows);

  // Guesses the versions of the rows of one commit; kNoSequence: there is no such row; nothing: the
  // row has to be read.
  std::vector<std::optional<SequenceNumber>> Guess(absl::Span<const Name> rows);
  // Tells what came of a guess. A wrong one is forgotten.
  void TellOutcome(Name row, SequenceNumber guess, bool was_right);
  // Tells what a row that was not guessed was found to hold (kNoSequence: there was none).
  void TellFound(Name row, SequenceNumber version);

  // Notes what a row holds, unless a higher version of it is known.
  void Note(Name row, SequenceNumber version);

  uint64_t guesses() const { return guesses_.load(std::memory_order_relaxed); }
  uint64_t wrong_guesses() const { return wrong_guesses_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<Name> row{0};  // 0: none
    std::atomic<SequenceNumber> version{kNoSequence};
  };
  // One line of the processor's cache.
  struct alignas(64) Place {
    std::array<Entry, 4> entries;
  };

  // The share of guesses of one kind that are wrong, the latest ones counting most.
  class WrongShare {
   public:
    explicit WrongShare(uint32_t share) : share_(share) {}
    // Returns whether so many guesses may be made together.
    bool Allows(size_t guesses) const;
    void Add(bool was_wrong);

   private:
    std::atomic<uint32_t> share_;
  };

  static constexpr uint32_t kAll = 1u << 24;  // the share 1

  Place& PlaceOf(Name row) { return places_[row & (places_.size() - 1)]; }
  Entry* Find(Name row);

  std::vector<Place> places_;  // a power of two, or none
  WrongShare of_known_{0};
  WrongShare of_unknown_{kAll / 2};
  std::atomic<uint64_t> guesses_{0};
  std::atomic<uint64_t> wrong_guesses_{0};
};

}  // namespace varve
