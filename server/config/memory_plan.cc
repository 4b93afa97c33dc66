#include "server/config/memory_plan.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "server/config/eviction_policy.h"
#include "util/base/size_text.h"

namespace varve {
namespace {

constexpr uint64_t kFixedReserve = 24u << 20;
constexpr uint64_t kLeastForEviction = 16u << 20, kMostForEviction = 40u << 20;
constexpr uint64_t kPartForEviction = 16, kPartForUnplannedEviction = 32;
constexpr uint64_t kLeastShare = 4u << 20;
// What one thread may map beyond the budget, before it looks, is a small part of this.
constexpr uint64_t kLeastMapped = 64u << 20;
// What one more part of a merge takes for the keys of a segment, and the part of the memory that
// all of them may take.
constexpr uint64_t kMemoryOfAJob = 64u << 20, kPartForJobs = 16;
constexpr int kFewestJobs = 2;

// From here down what the allocator keeps for itself matters.
constexpr uint64_t kLittleMemory = 1u << 30;
constexpr int kFewArenas = 2;
constexpr int kBytesOfAMapping = 128 << 10;
constexpr int kBytesToGiveBack = 1 << 20;

// The least that the control group of this process, and those around it, are allowed (version 2;
// version 1 has a file of another name).
uint64_t MemoryOfControlGroup() {
  uint64_t least = UINT64_MAX;
  const auto read = [&least](const std::string& path) {
    uint64_t bytes = 0;
    // "max" is no number.
    if (std::ifstream file(path); file >> bytes) least = std::min(least, bytes);
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); !group.empty(); group.resize(group.rfind('/'))) {
      read("/sys/fs/cgroup" + group + "/memory.max");
    }
  }
  read("/sys/fs/cgroup/memory.max");
  read("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  return least;
}

// Gets read through mappings instead of the block cache, which leaves half to them, or what is left
// if its size was given.
void ChooseMappedReads(bool block_cache_is_given, uint64_t left, EngineOptions* engine) {
  uint64_t mapped = block_cache_is_given ? left : engine->block_cache_size / 2;
  if (mapped < kLeastMapped) mapped = 0;
  engine->mapped_read_budget = mapped;
  if (!block_cache_is_given) engine->block_cache_size -= mapped;
}

}  // namespace

uint64_t EvictionMemory(uint64_t limit, bool is_planned) {
  return std::clamp(limit / (is_planned ? kPartForEviction : kPartForUnplannedEviction),
                    kLeastForEviction, kMostForEviction);
}

uint64_t MemoryAtHand() {
  const auto machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(machine, MemoryOfControlGroup());
}

absl::StatusOr<ServerConfig> FitIntoMemory(const ServerConfig& config, uint64_t at_hand) {
  const bool limit_is_given = config.memory_limit != 0;
  if (limit_is_given && config.memory_limit < kLeastMemory) {
    return absl::InvalidArgumentError(
        fmt::format("memory-limit takes 0 or at least {}", FormatSize(kLeastMemory)));
  }
  ServerConfig fitted = config;
  fitted.memory_limit = limit_is_given ? config.memory_limit : std::max(at_hand / 2, kLeastMemory);
  const bool evicts =
      ParseEvictionPolicy(config.server.max_memory_policy).value_or(EvictionRule()).on();
  const uint64_t usable = fitted.memory_limit - fitted.memory_limit / 8 - kFixedReserve -
                          (evicts ? EvictionMemory(fitted.memory_limit, /*is_planned=*/true) : 0);
  const auto buffers = static_cast<uint64_t>(fitted.engine.max_full_write_buffers) + 1;
  const auto is_given = [&config](const char* name) { return config.given.contains(name); };

  uint64_t given = 0, shares = 0;
  const auto count = [&](const char* name, uint64_t bytes) {
    is_given(name) ? given += bytes : ++shares;
  };
  count("write-buffer-size", buffers * fitted.engine.write_buffer_size);
  count("offset-table-cache-size", fitted.engine.offset_table_cache_size);
  count("maxmemory-clients", fitted.server.max_clients_memory);
  count("block-cache-size", fitted.engine.block_cache_size);
  if (is_given("mapped-read-budget")) given += fitted.engine.mapped_read_budget;
  if (limit_is_given && (given > usable || (shares > 0 && usable - given < kLeastShare * shares))) {
    return absl::InvalidArgumentError(
        fmt::format("memory-limit={}: the sizes that were given take {} of the {} that can be "
                    "divided, which leaves too little",
                    FormatSize(config.memory_limit), FormatSize(given), FormatSize(usable)));
  }
  if (limit_is_given && is_given("maxmemory-clients") && fitted.server.max_clients_memory == 0) {
    return absl::InvalidArgumentError(
        "memory-limit: it can't hold while maxmemory-clients=0 lets connections take any");
  }
  // A limit that nobody gave gives way.
  uint64_t left = given < usable / 2 || limit_is_given ? usable - given : usable / 2;
  const uint64_t share = shares > 0 ? left / shares : 0;
  const auto choose = [&](const char* name, uint64_t times, size_t* size, uint64_t chosen) {
    if (is_given(name)) return;
    *size = chosen;
    left -= times * chosen;
  };
  EngineOptions& engine = fitted.engine;
  choose("write-buffer-size", buffers, &engine.write_buffer_size,
         std::min<uint64_t>(share / buffers, engine.write_buffer_size));
  choose("offset-table-cache-size", 1, &engine.offset_table_cache_size,
         std::max(share / 2, std::min<uint64_t>(share, engine.offset_table_cache_size)));
  size_t& clients = fitted.server.max_clients_memory;
  choose("maxmemory-clients", 1, &clients, std::min<uint64_t>(share, clients));
  choose("block-cache-size", 1, &engine.block_cache_size, left);
  if (!is_given("mapped-read-budget"))
    ChooseMappedReads(is_given("block-cache-size"), left, &engine);
  if (engine.max_background_jobs == 0) {
    const uint64_t more = fitted.memory_limit / kPartForJobs / kMemoryOfAJob;
    engine.max_background_jobs =
        std::min(DefaultBackgroundJobs(),
                 kFewestJobs + static_cast<int>(std::min<uint64_t>(more, kMostBackgroundJobs)));
  }
  return fitted;
}

void SpareMemory(uint64_t limit) {
  if (limit > kLittleMemory) return;
  mallopt(M_ARENA_MAX, kFewArenas);
  mallopt(M_MMAP_THRESHOLD, kBytesOfAMapping);
  mallopt(M_TRIM_THRESHOLD, kBytesToGiveBack);
}

}  // namespace varve
