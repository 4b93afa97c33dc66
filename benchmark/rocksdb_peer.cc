// RocksDB: bloom filter, block cache, write buffer and no compression as peer.h says, all else as it comes.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "benchmark/peer.h"
#include "benchmark/process.h"

namespace varve::bench {
namespace {

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

void Check(const rocksdb::Status& status) {
  if (!status.ok()) Fail("RocksDB: " + status.ToString());
}

class RocksDbReader : public Reader {
 public:
  explicit RocksDbReader(rocksdb::DB* db) : db_(db) {}

  bool Get(std::string_view key, std::string* value) override {
    const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ToSlice(key), value);
    if (status.IsNotFound()) return false;
    Check(status);
    return true;
  }

  bool Seek(std::string_view key) override {
    // Refresh() renews the view and is much cheaper than a new iterator.
    if (iterator_ == nullptr) {
      iterator_.reset(db_->NewIterator(rocksdb::ReadOptions()));
    } else {
      Check(iterator_->Refresh());
    }
    iterator_->Seek(ToSlice(key));
    return Take();
  }

  bool Next() override {
    iterator_->Next();
    return Take();
  }

 private:
  bool Take() {
    if (!iterator_->Valid()) {
      Check(iterator_->status());
      return false;
    }
    key_ = ToView(iterator_->key());
    value_ = ToView(iterator_->value());
    return true;
  }

  rocksdb::DB* const db_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksDbPeer : public Peer {
 public:
  explicit RocksDbPeer(const PeerOptions& options) {
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
    table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
    rocksdb::Options db;
    db.create_if_missing = true;
    db.write_buffer_size = kWriteBufferBytes;
    db.compression = rocksdb::kNoCompression;
    db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    write_.sync = options.synced;
    rocksdb::DB* opened = nullptr;
    Check(rocksdb::DB::Open(db, options.dir, &opened));
    db_.reset(opened);
  }

  void Put(std::string_view key, std::string_view value) override {
    Check(db_->Put(write_, ToSlice(key), ToSlice(value)));
  }
  void Delete(std::string_view key) override { Check(db_->Delete(write_, ToSlice(key))); }
  void WriteBatch(std::span<const KeyValue> batch) override {
    rocksdb::WriteBatch updates;
    for (const auto& [key, value] : batch) Check(updates.Put(ToSlice(key), ToSlice(value)));
    Check(db_->Write(write_, &updates));
  }
  std::unique_ptr<Reader> NewReader() override { return std::make_unique<RocksDbReader>(db_.get()); }
  void Flush() override { Check(db_->Flush(rocksdb::FlushOptions())); }

 private:
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Peer> OpenRocksDb(const PeerOptions& options) { return std::make_unique<RocksDbPeer>(options); }

}  // namespace varve::bench
