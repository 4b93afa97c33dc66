#include "db/hbase/guessed_versions.h"

#include <algorithm>
#include <bit>

#include "util/base/hash.h"

namespace varve {
namespace {

// The wrong guesses that a commit may expect: 1 of so many.
constexpr uint64_t kWrongOf = 8;
// A guess changes the share by so much: 1 of 64.
constexpr int kWeightBits = 6;

}  // namespace

GuessedVersions::Name GuessedVersions::NameOf(std::string_view table, std::string_view row) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  return std::max<Name>(HashKey(row) + kOdd * HashKey(table), 1);
}

GuessedVersions::GuessedVersions(size_t rows)
    : places_(rows == 0 ? 0 : std::bit_ceil((rows + 3) / 4)) {}

bool GuessedVersions::WrongShare::Allows(size_t guesses) const {
  return uint64_t{share_.load(std::memory_order_relaxed)} * guesses * kWrongOf <= kAll;
}

// Two threads may add at the same time, and one of the two is lost then; a share need not be exact.
void GuessedVersions::WrongShare::Add(bool was_wrong) {
  const uint32_t share = share_.load(std::memory_order_relaxed);
  const uint32_t target = was_wrong ? kAll : 0;
  const auto change =
      (static_cast<int64_t>(target) - static_cast<int64_t>(share)) / (int64_t{1} << kWeightBits);
  share_.store(static_cast<uint32_t>(static_cast<int64_t>(share) + change),
               std::memory_order_relaxed);
}

GuessedVersions::Entry* GuessedVersions::Find(Name row) {
  if (places_.empty()) return nullptr;
  for (Entry& entry : PlaceOf(row).entries) {
    if (entry.row.load(std::memory_order_relaxed) == row) return &entry;
  }
  return nullptr;
}

std::vector<std::optional<SequenceNumber>> GuessedVersions::Guess(absl::Span<const Name> rows) {
  std::vector<std::optional<SequenceNumber>> guesses(rows.size());
  if (places_.empty()) return guesses;
  size_t known = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Entry* const entry = Find(rows[i]);
    if (entry == nullptr) continue;
    guesses[i] = entry->version.load(std::memory_order_relaxed);
    ++known;
  }
  const bool guesses_known = of_known_.Allows(known);
  const bool guesses_unknown = of_unknown_.Allows(rows.size() - known);
  uint64_t made = 0;
  for (std::optional<SequenceNumber>& guess : guesses) {
    const bool is_known = guess.has_value();
    if (!is_known && guesses_unknown) guess = kNoSequence;
    if (is_known && !guesses_known) guess.reset();
    made += guess.has_value() ? 1 : 0;
  }
  guesses_.fetch_add(made, std::memory_order_relaxed);
  return guesses;
}

void GuessedVersions::TellOutcome(Name row, SequenceNumber guess, bool was_right) {
  Entry* const entry = Find(row);
  (entry != nullptr || guess != kNoSequence ? of_known_ : of_unknown_).Add(!was_right);
  if (was_right) return;
  wrong_guesses_.fetch_add(1, std::memory_order_relaxed);
  if (entry != nullptr) entry->row.store(0, std::memory_order_relaxed);
}

void GuessedVersions::TellFound(Name row, SequenceNumber version) {
  Entry* const entry = Find(row);
  if (entry == nullptr) {
    of_unknown_.Add(version != kNoSequence);
  } else {
    of_known_.Add(entry->version.load(std::memory_order_relaxed) != version);
    entry->row.store(0, std::memory_order_relaxed);
  }
  Note(row, version);
}

void GuessedVersions::Note(Name row, SequenceNumber version) {
  if (places_.empty()) return;
  if (Entry* const known = Find(row); known != nullptr) {
    if (known->version.load(std::memory_order_relaxed) < version)
      known->version.store(version, std::memory_order_relaxed);
    return;
  }
  Place& place = PlaceOf(row);
  const auto rank = [](const Entry& entry) {
    return entry.row.load(std::memory_order_relaxed) == 0
               ? kNoSequence
               : entry.version.load(std::memory_order_relaxed) + 1;
  };
  Entry& entry =
      *std::min_element(place.entries.begin(), place.entries.end(),
                        [&](const Entry& a, const Entry& b) { return rank(a) < rank(b); });
  entry.version.store(version, std::memory_order_relaxed);
  entry.row.store(row, std::memory_order_relaxed);
}

}  // namespace varve
