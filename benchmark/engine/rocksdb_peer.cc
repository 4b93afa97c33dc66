// RocksDB: bloom filter, block cache, write buffers and no compression as peer.h says, all else as
// it comes.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "benchmark/engine/lsm_peer.h"

namespace varve::bench {
namespace {

struct RocksDbApi {
  using DB = rocksdb::DB;
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;
  using Options = rocksdb::Options;
  using ReadOptions = rocksdb::ReadOptions;
  using WriteOptions = rocksdb::WriteOptions;
  using Iterator = rocksdb::Iterator;
  using WriteBatch = rocksdb::WriteBatch;
  static constexpr const char* kName = "RocksDB";

  // Refresh() renews the view and is much cheaper than a new iterator.
  static void Renew(DB* db, std::unique_ptr<Iterator>* iterator) {
    if (*iterator == nullptr) {
      iterator->reset(db->NewIterator(ReadOptions()));
    } else {
      CheckLsm<RocksDbApi>((*iterator)->Refresh());
    }
  }
  static void Add(WriteBatch* updates, const Slice& key, const Slice& value) {
    CheckLsm<RocksDbApi>(updates->Put(key, value));
  }
  static void Flush(DB* db) { CheckLsm<RocksDbApi>(db->Flush(rocksdb::FlushOptions())); }
  static void Compact(DB* db) {
    CheckLsm<RocksDbApi>(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
  }
};

class RocksDbReader : public LsmReader<RocksDbApi> {
 public:
  using LsmReader::LsmReader;

  // The call that pins values in the block cache, which is the fastest of its MultiGets, and a copy
  // of each.
  void MultiGet(std::span<const std::string_view> keys,
                std::span<const std::string*> values) override {
    if (copies_.size() < keys.size()) {
      copies_.resize(keys.size());
      slices_.resize(keys.size());
      pinned_ = std::vector<rocksdb::PinnableSlice>(keys.size());
      statuses_.resize(keys.size());
    }
    for (size_t i = 0; i < keys.size(); ++i) slices_[i] = ToSlice<RocksDbApi>(keys[i]);
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), keys.size(), slices_.data(),
                  pinned_.data(), statuses_.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      values[i] = nullptr;
      if (!statuses_[i].IsNotFound()) {
        CheckLsm<RocksDbApi>(statuses_[i]);
        copies_[i].assign(pinned_[i].data(), pinned_[i].size());
        values[i] = &copies_[i];
      }
      pinned_[i].Reset();
    }
  }

 private:
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> pinned_;
  std::vector<rocksdb::Status> statuses_;
};

rocksdb::Options OptionsFor(const PeerOptions& peer) {
  rocksdb::Options options;
  options.create_if_missing = true;
  if (peer.defaults) return options;
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
  table.block_cache = rocksdb::NewLRUCache(peer.memory.block_cache);
  options.write_buffer_size = peer.memory.write_buffer;
  options.max_write_buffer_number = kWriteBuffers;
  options.compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class RocksDbPeer : public LsmPeer<RocksDbApi, RocksDbReader> {
 public:
  explicit RocksDbPeer(const PeerOptions& peer) : LsmPeer(OptionsFor(peer), peer) {}
};

}  // namespace

std::unique_ptr<Peer> OpenRocksDb(const PeerOptions& options) {
  return std::make_unique<RocksDbPeer>(options);
}

}  // namespace varve::bench
