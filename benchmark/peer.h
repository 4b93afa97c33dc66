// The one interface behind which every engine of engine_benchmark stands, so that all do the same work: Varve
// (varve_peer.cc) and its peers RocksDB, LevelDB and LMDB (one adapter file each, which also states that engine's
// settings).
//
// Settings common to all, as far as an engine has them: bloom filters of 10 bits a key, a 512 MB block cache, a 64 MB
// write buffer, no compression, the log on. Without `synced` a write returns once the engine has it (a power cut may
// lose it); with `synced` it returns once it is on disk.
//
// Errors: a peer that fails prints what happened and ends the process: a benchmark with errors has no figures.
// Thread-safety: a Peer may be used by many threads at once, a Reader by one at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::bench {

struct PeerOptions {
  std::string dir;      // exists and is empty
  bool synced = false;  // every write waits for the disk
};

inline constexpr size_t kBlockCacheBytes = 512u << 20;
inline constexpr size_t kWriteBufferBytes = 64u << 20;
inline constexpr int kBloomBitsPerKey = 10;

using KeyValue = std::pair<std::string_view, std::string_view>;

// Reads of one thread. Each Get and each Seek sees all writes that returned before it.
class Reader {
 public:
  virtual ~Reader() = default;

  // Copies the value of `key` into `value`; false when there is none.
  virtual bool Get(std::string_view key, std::string* value) = 0;

  // Takes a consistent view of now and goes to its first entry at or after `key` ("" is the first of all); false at the
  // end.
  virtual bool Seek(std::string_view key) = 0;
  // To the next entry of that view; false at the end.
  virtual bool Next() = 0;

  // The entry of the last Seek or Next that returned true, valid until the next call.
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }

 protected:
  std::string_view key_;
  std::string_view value_;
};

class Peer {
 public:
  // Closes the engine.
  virtual ~Peer() = default;

  virtual void Put(std::string_view key, std::string_view value) = 0;
  virtual void Delete(std::string_view key) = 0;
  // All of the batch or none of it.
  virtual void WriteBatch(std::span<const KeyValue> batch) = 0;
  virtual std::unique_ptr<Reader> NewReader() = 0;
  // Moves what is buffered in memory to the engine's sorted files, where it has such a buffer.
  virtual void Flush() = 0;
};

struct Engine {
  std::string id;     // as in --engines
  std::string title;  // as in the table
  std::function<std::unique_ptr<Peer>(const PeerOptions&)> open;
};

std::unique_ptr<Peer> OpenVarve(const PeerOptions& options);
std::unique_ptr<Peer> OpenRocksDb(const PeerOptions& options);
std::unique_ptr<Peer> OpenLevelDb(const PeerOptions& options);
std::unique_ptr<Peer> OpenLmdb(const PeerOptions& options);

// All engines, Varve first.
const std::vector<Engine>& AllEngines();

}  // namespace varve::bench
