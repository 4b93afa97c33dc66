#include "server/scans/random_key.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "server/execution/command_context.h"
#include "server/requests/key_range.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr int kDeepest = 256;  // branches on one way
constexpr int kGuesses = 4;    // at a branch, before all of them are listed

uint64_t RandomBelow(uint64_t bound) {
  thread_local std::mt19937_64 generator{(uint64_t{std::random_device()()} << 32) |
                                         std::random_device()()};
  return std::uniform_int_distribution<uint64_t>(0, bound - 1)(generator);
}

// The keys in [first, last], of which both are there and which share the beginning of `shared`
// bytes.
struct Branching {
  std::string first;
  std::string last;
  size_t shared = 0;

  // -1: it ends.
  int Lowest() const {
    return first.size() == shared ? -1 : static_cast<unsigned char>(first[shared]);
  }
  int Highest() const { return static_cast<unsigned char>(last[shared]); }
  std::string Beginning(int byte) const {
    return first.substr(0, shared) + static_cast<char>(byte);
  }
};

// Goes to the first key of the branch `byte`, or of the next one that there is, and returns which
// that is.
int SeekBranch(Iterator* iterator, const Branching& at, int byte) {
  iterator->Seek(at.Beginning(byte));
  return iterator->Valid() && iterator->key().size() > at.shared
             ? static_cast<unsigned char>(iterator->key()[at.shared])
             : at.Highest();
}

// One of the branches, each as likely as the others.
int ChooseBranch(Iterator* iterator, const Branching& at) {
  const int lowest = at.Lowest();
  const int highest = at.Highest();
  for (int i = 0; i < kGuesses; ++i) {
    const int guess =
        lowest + static_cast<int>(RandomBelow(static_cast<uint64_t>(highest - lowest) + 1));
    if (guess == lowest || guess == highest || SeekBranch(iterator, at, guess) == guess)
      return guess;
  }
  int chosen = lowest;
  uint64_t branches = 1;
  for (int branch = lowest; branch < highest;) {
    branch = SeekBranch(iterator, at, branch + 1);
    if (RandomBelow(++branches) == 0) chosen = branch;
  }
  return chosen;
}

absl::StatusOr<std::optional<std::string>> RandomKeyIn(StoreContents& store, NamespaceId space,
                                                       const KeyRange& range,
                                                       SequenceNumber* durable_after) {
  ReadOptions options = NoWaitReadOptions(space);
  options.without_value = true;
  const std::unique_ptr<Iterator> iterator =
      store.NewIterator(options, range.lower, range.upper, durable_after);
  Branching at;
  iterator->SeekToFirst();
  if (!iterator->Valid()) {
    *durable_after = std::max(*durable_after, iterator->durable_after());
    if (const absl::Status status = iterator->status(); !status.ok()) return status;
    return std::optional<std::string>();
  }
  at.first.assign(iterator->key());
  iterator->SeekToLast();
  if (iterator->Valid()) at.last.assign(iterator->key());
  for (int depth = 0; depth < kDeepest && iterator->Valid() && at.first != at.last; ++depth) {
    const size_t shorter = std::min(at.first.size(), at.last.size());
    const auto differs = std::mismatch(
        at.first.begin(), at.first.begin() + static_cast<ptrdiff_t>(shorter), at.last.begin());
    at.shared = static_cast<size_t>(differs.first - at.first.begin());
    const int lowest = at.Lowest();
    const int highest = at.Highest();
    const int chosen = ChooseBranch(iterator.get(), at);
    if (chosen < 0) break;  // the key that ends here
    const std::string beginning = at.Beginning(chosen);
    if (chosen != lowest) {
      iterator->Seek(beginning);
      if (!iterator->Valid()) break;
      at.first.assign(iterator->key());
    }
    if (chosen != highest) {
      const std::string behind = PrefixRange(beginning).upper;
      iterator->SeekForPrev(behind);
      if (iterator->Valid() && iterator->key() == behind) iterator->Prev();
      if (!iterator->Valid()) break;
      at.last.assign(iterator->key());
    }
  }
  *durable_after = std::max(*durable_after, iterator->durable_after());
  if (const absl::Status status = iterator->status(); !status.ok()) return status;
  return std::optional<std::string>(std::move(at.first));
}

}  // namespace

absl::StatusOr<std::optional<std::string>> RandomKey(StoreContents& store, NamespaceId space,
                                                     SelectedKeys keys,
                                                     SequenceNumber* durable_after) {
  VARVE_ASSERT(keys.patterns.empty());
  std::vector<KeyRange>& ranges = keys.ranges;
  for (; !ranges.empty(); ranges.pop_back()) {
    std::swap(ranges[RandomBelow(ranges.size())], ranges.back());
    absl::StatusOr<std::optional<std::string>> key =
        RandomKeyIn(store, space, ranges.back(), durable_after);
    if (!key.ok() || key->has_value()) return key;
  }
  return std::optional<std::string>();
}

}  // namespace varve
