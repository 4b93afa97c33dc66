// Holds the order in which the change feed showed the writes of a key against what concurrent
// clients were told: whether that order explains their replies.
//
// Thread-safety: plain values; the function is pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace varve::prove {

// One call of a client for a key. A value is named by its number, which is written at most once;
// "-" is no value.
struct FeedCall {
  enum class Kind : uint8_t { kGet, kSet, kDelete, kCompareAndSet };

  Kind kind = Kind::kGet;
  int64_t call = 0;
  int64_t done = 0;      // at the latest it took effect then, if ever
  std::string written;   // of kSet and kCompareAndSet
  std::string expected;  // of kCompareAndSet: what was there before
  std::string result;  // of kGet: the value; else 1: it had an effect, 0: it had none. Empty: lost
};

// Checks the calls for one key. `order` has what the key became, write by write: numbers, and "-"
// where it was deleted. Internal: it says what does not fit.
//
//   - every write that was done is there once, and none that was refused;
//   - a compare-and-set stands right behind what it expected;
//   - as many deletions are there as found a key, and none where there was none;
//   - a write that was done before another one was called stands before it;
//   - a read shows what was there at some time between its call and its reply.
absl::Status CheckFeedOrder(const std::vector<FeedCall>& calls,
                            const std::vector<std::string>& order);

}  // namespace varve::prove
