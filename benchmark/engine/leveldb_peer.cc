// LevelDB: bloom filter, block cache and no compression as peer.h says, all else as it comes. It
// has two write buffers, which share the memory of those that peer.h allows.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "benchmark/engine/lsm_peer.h"

namespace varve::bench {
namespace {

struct LevelDbApi {
  using DB = leveldb::DB;
  using Slice = leveldb::Slice;
  using Status = leveldb::Status;
  using Options = leveldb::Options;
  using ReadOptions = leveldb::ReadOptions;
  using WriteOptions = leveldb::WriteOptions;
  using Iterator = leveldb::Iterator;
  using WriteBatch = leveldb::WriteBatch;
  static constexpr const char* kName = "LevelDB";

  static void Renew(DB* db, std::unique_ptr<Iterator>* iterator) {
    iterator->reset(db->NewIterator(ReadOptions()));
  }
  static void Add(WriteBatch* updates, Slice key, Slice value) { updates->Put(key, value); }
  static void Flush(DB* db) {
    // There is no call for it, but a compaction of a range that holds no key writes the memtable
    // out and does nothing else.
    const Slice behind_all("\xff\xff\xff\xff");
    db->CompactRange(&behind_all, &behind_all);
  }
  static void Compact(DB* db) { db->CompactRange(nullptr, nullptr); }
};

// What leveldb::Options point at; it has to outlive the database, and is a base of its own to be
// destroyed after it.
struct LevelDbParts {
  explicit LevelDbParts(const PeerOptions& peer)
      : filter(leveldb::NewBloomFilterPolicy(kBloomBitsPerKey)),
        cache(leveldb::NewLRUCache(peer.memory.block_cache)) {
    options.create_if_missing = true;
    if (peer.defaults) return;
    options.filter_policy = filter.get();
    options.block_cache = cache.get();
    options.write_buffer_size = peer.memory.write_buffer * kWriteBuffers / 2;
    options.compression = leveldb::kNoCompression;
  }

  const std::unique_ptr<const leveldb::FilterPolicy> filter;
  const std::unique_ptr<leveldb::Cache> cache;
  leveldb::Options options;
};

class LevelDbPeer : private LevelDbParts, public LsmPeer<LevelDbApi> {
 public:
  explicit LevelDbPeer(const PeerOptions& peer)
      : LevelDbParts(peer), LsmPeer(LevelDbParts::options, peer) {}
};

}  // namespace

std::unique_ptr<Peer> OpenLevelDb(const PeerOptions& options) {
  return std::make_unique<LevelDbPeer>(options);
}

}  // namespace varve::bench
