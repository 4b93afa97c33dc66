// A peer is the interface of every engine of engine_benchmark, so that all do the same work: Varve
// (varve_peer.cc) and RocksDB, LevelDB, LMDB, WiredTiger and Pebble (one adapter file each, which
// also states that engine's settings).
//
// Settings common to all, as far as an engine has them: bloom filters of 10 bits a key, a block
// cache and kWriteBuffers write buffers of the row's budget, no compression, the log on. With
// `defaults` each engine has its own instead, but for durability, which is always the same for all.
// Without `synced` a write returns once the engine has it (a power cut may lose it); with `synced`
// it returns once it is on disk.
//
// Errors: a peer that fails prints what happened and ends the process, because a benchmark with
// errors has no figures.
//
// Thread-safety: a Peer may be used by many threads at once, a Reader by one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::bench {

struct Row;
struct Timing;

inline constexpr int kBloomBitsPerKey = 10;
// How many write buffers an engine may hold, the one that is written included, before writers wait
// for flushes: Varve's default (EngineOptions::max_full_write_buffers).
inline constexpr int kWriteBuffers = 5;

// The memory that an engine gets, the same for every engine.
struct Budget {
  // Of the process, with the kernel's pages of its files (MemoryLimit); 0: no limit.
  uint64_t total = uint64_t{4} << 30;
  uint64_t block_cache = uint64_t{512} << 20;
  uint64_t write_buffer = uint64_t{64} << 20;  // of each of the kWriteBuffers
};

struct PeerOptions {
  std::string dir;        // exists; empty, or what the same engine left there
  bool synced = false;    // every write waits for the disk
  bool defaults = false;  // the engine's own defaults
  Budget memory;
  bool short_of_memory = false;  // the store is larger than the memory in all
};

using KeyValue = std::pair<std::string_view, std::string_view>;

// A reader does the reads of one thread. Each Get and each Seek sees all writes that returned
// before it.
class Reader {
 public:
  virtual ~Reader() = default;

  // Copies the value of `key` into `*value`. Returns false if there is none.
  virtual bool Get(std::string_view key, std::string* value) = 0;

  // Copies the value of each keys[i] into a string and stores its address in values[i], null if
  // there is no value. The strings are valid until the next call. An engine without such a call
  // does one Get after the other.
  virtual void MultiGet(std::span<const std::string_view> keys,
                        std::span<const std::string*> values) {
    if (copies_.size() < keys.size()) copies_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i)
      values[i] = Get(keys[i], &copies_[i]) ? &copies_[i] : nullptr;
  }

  // Takes a consistent view of the present and moves to its first entry at or after `key` ("" is
  // the lowest key). Returns false at the end.
  virtual bool Seek(std::string_view key) = 0;
  // Moves to the next entry of that view. Returns false at the end.
  virtual bool Next() = 0;

  // Return the entry of the last Seek or Next that returned true, valid until the next call.
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 protected:
  std::string_view key_;
  std::string_view value_;
  std::vector<std::string> copies_;  // of the last MultiGet
};

class Peer {
 public:
  // Closes the engine.
  virtual ~Peer() = default;

  virtual void Put(std::string_view key, std::string_view value) = 0;
  virtual void Delete(std::string_view key) = 0;
  // Writes all of the batch or none of it.
  virtual void WriteBatch(std::span<const KeyValue> batch) = 0;
  // Returns whether the engine has PutAsync, which calls `done`, on any thread, once the put is as
  // durable as a Put that returned.
  virtual bool CanPutAsync() const { return false; }
  virtual void PutAsync(std::string_view, std::string_view, std::function<void()>) {}
  virtual std::unique_ptr<Reader> NewReader() = 0;
  // Flushes the write buffer to the engine's sorted files, if it has one.
  virtual void Flush() = 0;
  // Merges everything into one sorted run, if the engine has several.
  virtual void Compact() = 0;

  // Returns the process that the engine runs in; 0: this one.
  virtual pid_t process() const { return 0; }
  // Does the work of the row by itself and stores what it took in `*timing`, if the engine runs in
  // a process of its own, to which each call would be a message. Returns false if the caller has to
  // do it by the calls above.
  virtual bool DoByItself(const Row&, Timing*) { return false; }
};

struct Engine {
  std::string id;     // as in --engines
  std::string title;  // as in the table
  std::function<std::unique_ptr<Peer>(const PeerOptions&)> open;
  std::string missing = "";  // why it can't be measured; empty: it can
};

std::unique_ptr<Peer> OpenVarve(const PeerOptions& options);
std::unique_ptr<Peer> OpenRocksDb(const PeerOptions& options);
std::unique_ptr<Peer> OpenLevelDb(const PeerOptions& options);
std::unique_ptr<Peer> OpenLmdb(const PeerOptions& options);
std::unique_ptr<Peer> OpenWiredTiger(const PeerOptions& options);
std::unique_ptr<Peer> OpenPebble(const PeerOptions& options);

// Return why the engine is not there; empty if it is.
std::string WiredTigerMissing();
std::string PebbleMissing();

// Returns all engines, Varve first.
const std::vector<Engine>& AllEngines();

}  // namespace varve::bench
