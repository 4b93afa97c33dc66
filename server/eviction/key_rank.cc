#include "server/eviction/key_rank.h"

#include <algorithm>
#include <limits>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr uint64_t kNeverExpires = uint64_t{1} << 63;
constexpr uint64_t kMarkEveryMillis = 1000;
constexpr uint64_t kLogFactor = 10;
constexpr uint32_t kMostReads = 4096;  // that one step counts one by one

uint64_t NextRandom(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

// Returns when the count of uses will have decayed to 0.
uint64_t EndOfUses(const RankedKey& key) {
  const uint64_t end_of_new = key.written_ms + kUsesOfNewKey * kMillisPerUse;
  if (!key.access.known()) return end_of_new;
  return std::max(end_of_new, key.access.at_ms + key.access.uses * kMillisPerUse);
}

}  // namespace

uint64_t RankOf(EvictionOrder order, const RankedKey& key) {
  switch (order) {
    case EvictionOrder::kLfu:
      return EndOfUses(key);
    case EvictionOrder::kTtl:
      return key.expiry_ms != 0 ? key.expiry_ms : kNeverExpires + key.written_ms;
    case EvictionOrder::kRandom:
      return key.hash;
    default:
      return LastUseOf(key);
  }
}

uint8_t UsesAt(const RankedKey& key, uint64_t now_ms) {
  const uint64_t end = EndOfUses(key);
  const uint64_t uses = end > now_ms ? (end - now_ms + kMillisPerUse - 1) / kMillisPerUse : 0;
  return static_cast<uint8_t>(std::min<uint64_t>(uses, std::numeric_limits<uint8_t>::max()));
}

KeyAccess AfterReads(const KeyAccess& before, KeyReads reads, uint64_t now_ms, uint64_t* random) {
  uint64_t uses = 0;
  if (before.known()) {
    const uint64_t decayed = now_ms > before.at_ms ? (now_ms - before.at_ms) / kMillisPerUse : 0;
    uses = before.uses - std::min<uint64_t>(before.uses, decayed);
  }
  uses = std::max<uint64_t>(uses, reads.least_uses);
  for (uint32_t i = 0; i < std::min(reads.count, kMostReads); ++i) {
    if (uses == std::numeric_limits<uint8_t>::max()) break;
    const uint64_t above = uses > kUsesOfNewKey ? uses - kUsesOfNewKey : 0;
    if (NextRandom(random) % (above * kLogFactor + 1) == 0) ++uses;
  }
  return {std::max(now_ms, before.at_ms), static_cast<uint8_t>(uses)};
}

uint64_t VersionTimes::MillisOf(SequenceNumber version) {
  if (version < first_ || version >= end_) {
    const absl::StatusOr<uint64_t> mark = store_.InstantOf(version);
    if (!mark.ok()) return 0;
    from_ms_ = *mark;
    const absl::StatusOr<SequenceNumber> before = store_.VersionAt(*mark - 1);
    first_ = before.ok() ? *before + 1 : version;
    const absl::StatusOr<SequenceNumber> last = store_.VersionAt(*mark);
    end_ = std::max(last.ok() ? *last : version, version) + 1;
    // Behind the last mark, writes go on: then the bracket grows, and is looked up anew.
    const absl::StatusOr<uint64_t> next = store_.InstantOf(end_);
    until_ms_ = std::min(next.ok() ? *next : store_.NowMillis(), from_ms_ + kMarkEveryMillis);
    until_ms_ = std::max(until_ms_, from_ms_);
    first_ = std::min(first_, version);
  }
  VARVE_ASSERT(first_ <= version && version < end_);
  return from_ms_ + (until_ms_ - from_ms_) * (version - first_) / (end_ - first_);
}

}  // namespace varve
