#include "server/memory_plan.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "util/size_text.h"

namespace varve {
namespace {

constexpr uint64_t kFixedReserve = 24u << 20;
constexpr uint64_t kLeastWriteBuffer = 1u << 20;

// From here down what the allocator keeps for itself matters.
constexpr uint64_t kLittleMemory = 1u << 30;
constexpr int kFewArenas = 2;
constexpr int kBytesOfAMapping = 128 << 10;
constexpr int kBytesToGiveBack = 1 << 20;

// The least that the control group of this process, and those around it, are allowed (version 2; version 1 has a file of another name).
uint64_t MemoryOfControlGroup() {
  uint64_t least = UINT64_MAX;
  const auto read = [&least](const std::string& path) {
    uint64_t bytes = 0;
    if (std::ifstream file(path); file >> bytes) least = std::min(least, bytes);  // "max" is no number
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

}  // namespace

uint64_t MemoryAtHand() {
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(machine, MemoryOfControlGroup());
}

absl::StatusOr<ServerConfig> FitIntoMemory(const ServerConfig& config, uint64_t at_hand) {
  static const ServerConfig defaults;
  const bool is_given = config.memory_limit != 0;
  if (is_given && config.memory_limit < kLeastMemory) {
    return absl::InvalidArgumentError(fmt::format("memory-limit takes 0 or at least {}", FormatSize(kLeastMemory)));
  }
  ServerConfig fitted = config;
  fitted.memory_limit = is_given ? config.memory_limit : std::max(at_hand / 2, kLeastMemory);
  const uint64_t usable = fitted.memory_limit - fitted.memory_limit / 8 - kFixedReserve;

  EngineOptions& engine = fitted.engine;
  const auto buffers = static_cast<uint64_t>(engine.max_full_write_buffers) + 1;
  if (engine.write_buffer_size == defaults.engine.write_buffer_size) {
    engine.write_buffer_size = std::clamp(usable / 4 / buffers, kLeastWriteBuffer, engine.write_buffer_size);
  }
  if (engine.offset_table_cache_size == defaults.engine.offset_table_cache_size) {
    engine.offset_table_cache_size = std::max(usable / 8, std::min(usable / 4, engine.offset_table_cache_size));
  }
  size_t& clients = fitted.server.max_clients_memory;
  if (clients == defaults.server.max_clients_memory) clients = std::min(usable / 4, clients);

  const uint64_t taken = buffers * engine.write_buffer_size + engine.offset_table_cache_size + clients;
  const uint64_t left = taken < usable ? usable - taken : 0;
  if (engine.block_cache_size == defaults.engine.block_cache_size) {
    engine.block_cache_size = is_given ? left : std::max(left, std::min(usable / 4, engine.block_cache_size));
  }
  if (is_given && (taken > usable || (engine.block_cache_size > left))) {
    return absl::InvalidArgumentError(
        fmt::format("memory-limit={}: the sizes that were given take {} of the {} that can be divided",
                    FormatSize(config.memory_limit), FormatSize(taken + engine.block_cache_size), FormatSize(usable)));
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
