// Every setting and every limit of the engine, with its default. Plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "varve/types.h"
#include "varve/types.h"

namespace varve {

class Clock;
class CompactionFilter;
class CompactionPicker;
class FileSystem;
class Snapshot;
class ExclusiveWrite;

// Limits that no setting lifts.
inline constexpr size_t kMaxKeySize = 1 << 20;           // bytes of a user key
inline constexpr size_t kMaxValueSize = 512u << 20;      // bytes of a value
inline constexpr size_t kMaxBatchBytes = 1024u << 20;    // bytes of one batch, encoded
inline constexpr size_t kMaxBatchOperations = 1u << 20;  // operations in one batch

// When a write is acknowledged; what each mode loses stands in docs/durability.md.
enum class Durability : uint8_t {
  kAlways,       // on disk
  kEverySecond,  // with the kernel; synced each second
  kNone,         // with the kernel
};

// How what is written gets to the disk.
enum class SyncBackend : uint8_t {
  kAuto,    // the fastest there is
  kPwrite,  // pwrite and fdatasync
  // Groups go around the kernel's cache (O_DIRECT, O_DSYNC), the rest through mapped memory; as
  // kPwrite where files don't allow it.
  kDirect,
};
// What `wanted` comes to on this machine.
constexpr SyncBackend Resolve(SyncBackend wanted) {
  return wanted == SyncBackend::kAuto ? SyncBackend::kDirect : wanted;
}

struct EngineOptions {
  bool create_if_missing = true;

  // Durability.
  Durability sync = Durability::kAlways;
  SyncBackend sync_backend = SyncBackend::kAuto;
  // A group is written when nothing is under way, or has reached this size, or its first write has
  // waited this long.
  size_t group_max_bytes = 4u << 20;
  std::chrono::microseconds group_max_delay{0};
  // Bytes of one log file, zero-filled ahead. 0: as large as a write buffer, between 1 and 64 MiB.
  size_t log_file_size = 0;

  // Memory.
  size_t write_buffer_size = 64u << 20;
  // Full write buffers that may wait for their flush; beyond it writes wait.
  int max_full_write_buffers = 4;
  size_t offset_table_cache_size = 512u << 20;
  size_t block_cache_size = 512u << 20;

  // Shape of the tree.
  size_t segment_size = 128u << 20;  // bytes at which a compaction starts the next segment of a run
  // Sorted runs that a level gathers before it is merged down; the first one twice as many while
  // buffers are filled in quick succession.
  int runs_per_level = 4;
  // Bytes from which on a value is written once and segments point to it; less than 1 KiB counts as
  // that. 0: none is kept apart.
  size_t value_separation_size = 1u << 10;

  // Parts that a user of the library may replace. Null: the default.
  std::shared_ptr<const CompactionPicker> compaction_picker;
  std::shared_ptr<const CompactionFilter> compaction_filter;
  FileSystem* file_system = nullptr;  // not owned
  const Clock* clock = nullptr;       // not owned
};

struct ReadOptions {
  // The state to read; null: what is visible now.
  const Snapshot* snapshot = nullptr;
  NamespaceId space = kDefaultNamespace;
  // Return only what a crash can no longer take back: wait for the log where needed. The server
  // turns it off and gates its replies itself.
  bool wait_until_durable = true;
  // Off for long scans that should not push hot blocks out.
  bool fill_cache = true;
  // The value itself is not wanted: it is not copied, nor read where it is kept apart.
  // ReadResult::value_size tells of it, and Iterator::value_size.
  bool without_value = false;
  // Of the values of one MultiGet: when they have reached it, the keys that follow are not read
  // (MultiGetResult::read says which).
  size_t max_bytes = SIZE_MAX;
  // A longer value is not read from disk, and not copied: ReadResult::too_large says so.
  size_t max_value_bytes = SIZE_MAX;
};

struct WriteOptions {
  // Unset (null in `sync_override`): the store's mode.
  Durability sync = Durability::kAlways;
  bool override_sync = false;
  // Who has the turn (Store::BeginExclusiveWrite) writes with it; others wait for its end.
  const ExclusiveWrite* exclusive_write = nullptr;
  bool waits_for_exclusive_write = true;  // false: fails with Cancelled while somebody else has it
};

}  // namespace varve
