// Every setting and every limit of the engine, with its default, and the options of single reads
// and writes. Plain values.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "varve/compression.h"
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
inline constexpr size_t kMaxMetadataSize = 64u << 10;    // bytes of a value's metadata
inline constexpr size_t kMaxBatchBytes = 1024u << 20;    // bytes of one batch, encoded
inline constexpr size_t kMaxBatchOperations = 1u << 20;  // operations in one batch
inline constexpr int kMostBackgroundJobs = 256;          // threads that flush and merge

// The moment at which a write is acknowledged; docs/durability.md says what each mode may lose.
enum class Durability : uint8_t {
  kAlways,       // on disk
  kEverySecond,  // with the kernel; synced each second
  kNone,         // with the kernel
};

// The system calls by which the log gets to the disk.
enum class SyncBackend : uint8_t {
  kAuto,    // the fastest there is
  kPwrite,  // pwrite and fdatasync
  kDirect,  // around the kernel's cache (O_DIRECT, O_DSYNC); as kPwrite where files don't allow it
};
// Returns what `wanted` comes to on this machine.
constexpr SyncBackend Resolve(SyncBackend wanted) {
  return wanted == SyncBackend::kAuto ? SyncBackend::kDirect : wanted;
}

// How long replaced and deleted versions stay readable. Where both limits are set, the one that
// reaches less far back holds.
struct HistoryLimits {
  uint64_t time_ms = 0;  // 0: no limit by time
  // The bytes of keys and values that may have been written since the oldest readable version; 0:
  // no limit by size.
  uint64_t bytes = 0;

  // Returns whether versions are kept at all.
  bool on() const { return time_ms != 0 || bytes != 0; }
  friend bool operator==(const HistoryLimits&, const HistoryLimits&) = default;
};

// How much of what was committed the store retains for readers of the change feed
// (varve/changes.h); both 0: nothing, but what feeds hold back. Of two limits the one that is
// reached first counts.
struct ChangeRetention {
  uint64_t bytes = 0;    // on disk; 0: no limit by size
  uint64_t time_ms = 0;  // 0: no limit by time

  // Returns whether changes are retained though no feed holds them back.
  bool on() const { return bytes != 0 || time_ms != 0; }
};

struct EngineOptions {
  bool create_if_missing = true;
  // Has a store that an earlier version of Varve made go over to the present format, which that
  // version cannot read any more. Without it the store goes on in its format and keeps no times.
  bool finalize_upgrade = false;
  // Opens the store as one that follows a primary (ReplicatedStore::SetFollowing), so that it
  // writes nothing of its own between its opening and that call: not even that a key has expired.
  bool follows = false;

  // Durability.
  Durability sync = Durability::kAlways;
  SyncBackend sync_backend = SyncBackend::kAuto;
  // The log thread writes a group of commits as soon as no other write is under way, or the group
  // has this size, or its first commit has waited this long.
  size_t group_max_bytes = 4u << 20;
  std::chrono::microseconds group_max_delay{0};
  // The bytes of one log file, zero-filled ahead. 0: as large as a write buffer, between 1 and 64
  // MiB.
  size_t log_file_size = 0;

  // Memory.
  size_t write_buffer_size = 64u << 20;
  // The number of full write buffers that may wait for their flush; beyond it writes wait.
  int max_full_write_buffers = 4;
  size_t offset_table_cache_size = 512u << 20;
  size_t block_cache_size = 512u << 20;
  // Above 0, small reads of files are copies out of mappings, of which so many bytes may be
  // resident: data that the kernel holds is read without a system call, and gets leave every record
  // to the kernel's cache and put nothing into the block cache. The program thereby asks for the
  // guard that this takes, a handler of SIGBUS for the whole process. A file system of the
  // program's own has to map by itself.
  size_t mapped_read_budget = 0;

  // Shape of the tree.
  size_t segment_size = 128u << 20;  // bytes at which a compaction starts the next segment of a run
  // The number of sorted runs that a level gathers before it is merged down. The first level
  // gathers twice as many while buffers are filled in quick succession.
  int runs_per_level = 4;
  // The number of threads that flush and merge together. One flushes and one merges, so less than 2
  // counts as 2; the others help both: they flush further full buffers, and merge parts of large
  // merges. 0: DefaultBackgroundJobs().
  int max_background_jobs = 0;
  // The size in bytes from which on a value is written once and segments point to it; less than 1
  // KiB counts as 1 KiB. 0: no value is kept apart.
  size_t value_separation_size = 1u << 10;
  // How values are compressed, in namespaces that have no setting of their own
  // (NamespaceOptions::compression). A store whose upgrade is not finalized compresses nothing.
  Compression compression;

  // The limits of namespaces that have none of their own (NamespaceOptions::history). They take a
  // store of the present format.
  HistoryLimits history;
  ChangeRetention changes;

  // Parts that a program may replace. Null: the default.
  // Requires: the file system and the clock outlive the store.
  std::shared_ptr<const CompactionPicker> compaction_picker;
  std::shared_ptr<const CompactionFilter> compaction_filter;
  FileSystem* file_system = nullptr;  // not owned
  const Clock* clock = nullptr;       // not owned
};

// Returns the number of background jobs where the options leave it open: half of the machine's
// processors, 2 to 8.
inline int DefaultBackgroundJobs() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 2, 8);
}

struct ReadOptions {
  // The state to read; null: what is visible now.
  // Requires: the store that is read gave the snapshot.
  const Snapshot* snapshot = nullptr;
  NamespaceId space = kDefaultNamespace;
  // Return only what a crash can no longer take back: wait for the log where needed. The server
  // turns it off and holds its replies back itself.
  bool wait_until_durable = true;
  // Off for long scans that should not push hot blocks out.
  bool fill_cache = true;
  // The value itself is not wanted: it is not copied, nor read where it is kept apart.
  // ReadResult::value_size and Iterator::value_size tell its size.
  bool without_value = false;
  // The metadata is wanted, too: in ReadResult::metadata and RangeEntry::metadata. An iterator
  // always tells it.
  bool with_metadata = false;
  // A key whose time is over is found for as long as nobody has removed it. Get and MultiGet obey
  // it; iterators, slices and counts do not. For a follower, whose primary says when a key is gone.
  bool expired_too = false;
  // About how many entries an iterator will show; 0: nobody knows. A store on other machines asks
  // for so many at first.
  uint32_t expected_entries = 0;
  // Iterators and slices of a range leave out what this version or an earlier one wrote, and do not
  // look where nothing newer lies. Other reads ignore it.
  SequenceNumber newer_than = kNoSequence;
  // When the values of one MultiGet have reached this size together, the keys that follow are not
  // read (MultiGetResult::read says which). A slice of a range ends by it, too.
  size_t max_bytes = SIZE_MAX;
  // A longer value is not read from disk, and not copied: ReadResult::too_large says so.
  size_t max_value_bytes = SIZE_MAX;
  // Get, MultiGet and ReadRangeAsync of a store on other machines fail with StoreUnavailable once
  // it has passed, and at the store's own deadline at the latest. Whoever makes several calls for
  // one request gives all of them the same. Other reads, and stores in this process, ignore it.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct WriteOptions {
  // The mode of this write if `override_sync` is set; else it has the store's.
  Durability sync = Durability::kAlways;
  bool override_sync = false;
  // The holder of the exclusive right (StoreWrites::BeginExclusiveWrite) writes with it; other
  // writers wait for its end.
  const ExclusiveWrite* exclusive_write = nullptr;
  // False: the write fails with Cancelled while another writer has the exclusive right.
  bool waits_for_exclusive_write = true;
  // The keys of the batch have nothing to do with each other: it may hold keys of several groups
  // (varve/key_group.h), and a store with Atomicity::kWithinGroup commits it group by group. Where
  // that fails some of it may be written.
  bool independent_keys = false;
  // As in ReadOptions. Update() makes no further try then, and a transaction gives it to all of its
  // reads, too.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

}  // namespace varve
