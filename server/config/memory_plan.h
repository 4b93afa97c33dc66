// The plan that divides --memory-limit among write buffers, offset tables, block cache, mappings of
// files and connections.
//
// Thread-safety: The functions keep no state. MemoryAtHand() asks the system for its memory, and
// FitIntoMemory() for its processors.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/config/settings.h"

namespace varve {

inline constexpr uint64_t kLeastMemory = 128u << 20;  // that can be divided

// Bytes that the order of evictions may take, once something is evicted, under such a limit.
// `is_planned`: maxmemory-policy evicted at the start, so they were set aside. Where evictions
// begin later, or in namespaces alone, they come from what is kept for what isn't counted, and are
// less than half of that.
uint64_t EvictionMemory(uint64_t limit, bool is_planned);

// Bytes that this process may use: of the machine, or of its control group where that has less.
uint64_t MemoryAtHand();

// `config` with sizes that keep to memory-limit together, or to half of `at_hand` where that is 0.
// A size that was given stays as it is; the others share the rest. The block cache and the mappings
// halve what is left of it, or the one whose size was not given gets it; mappings that would get
// less than 64 MiB get nothing. Where maxmemory-policy evicts, EvictionMemory() is set aside first.
// An eighth and 24 MiB are kept for what isn't counted: merges, the log's buffers, what allocations
// lose, and the order of evictions where namespaces alone evict. Where max-background-jobs is 0,
// there are no more than a sixteenth of the limit has memory for. InvalidArgument: the sizes that
// were given leave nothing of the limit that was given.
[[nodiscard]] absl::StatusOr<ServerConfig> FitIntoMemory(const ServerConfig& config,
                                                         uint64_t at_hand);

// If the limit is low, makes the allocator give back what is freed and keep less for each thread.
// Measured, that is a third of what a server with 128 MiB took. Requires: no other thread has
// begun.
void SpareMemory(uint64_t limit);

}  // namespace varve
