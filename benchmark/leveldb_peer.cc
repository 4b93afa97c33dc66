// LevelDB: bloom filter, block cache, write buffer and no compression as peer.h says, all else as it comes.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "benchmark/peer.h"
#include "benchmark/process.h"

namespace varve::bench {
namespace {

leveldb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ToView(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

void Check(const leveldb::Status& status) {
  if (!status.ok()) Fail("LevelDB: " + status.ToString());
}

class LevelDbReader : public Reader {
 public:
  explicit LevelDbReader(leveldb::DB* db) : db_(db) {}

  bool Get(std::string_view key, std::string* value) override {
    const leveldb::Status status = db_->Get(leveldb::ReadOptions(), ToSlice(key), value);
    if (status.IsNotFound()) return false;
    Check(status);
    return true;
  }

  bool Seek(std::string_view key) override {
    iterator_.reset(db_->NewIterator(leveldb::ReadOptions()));
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

  leveldb::DB* const db_;
  std::unique_ptr<leveldb::Iterator> iterator_;
};

class LevelDbPeer : public Peer {
 public:
  explicit LevelDbPeer(const PeerOptions& options)
      : filter_(leveldb::NewBloomFilterPolicy(kBloomBitsPerKey)), cache_(leveldb::NewLRUCache(kBlockCacheBytes)) {
    leveldb::Options db;
    db.create_if_missing = true;
    db.filter_policy = filter_.get();
    db.block_cache = cache_.get();
    db.write_buffer_size = kWriteBufferBytes;
    db.compression = leveldb::kNoCompression;
    write_.sync = options.synced;
    leveldb::DB* opened = nullptr;
    Check(leveldb::DB::Open(db, options.dir, &opened));
    db_.reset(opened);
  }

  void Put(std::string_view key, std::string_view value) override {
    Check(db_->Put(write_, ToSlice(key), ToSlice(value)));
  }
  void Delete(std::string_view key) override { Check(db_->Delete(write_, ToSlice(key))); }
  void WriteBatch(std::span<const KeyValue> batch) override {
    leveldb::WriteBatch updates;
    for (const auto& [key, value] : batch) updates.Put(ToSlice(key), ToSlice(value));
    Check(db_->Write(write_, &updates));
  }
  std::unique_ptr<Reader> NewReader() override { return std::make_unique<LevelDbReader>(db_.get()); }
  void Flush() override {
    // There is no call for it, but a compaction of a range that holds no key writes the memtable out and does nothing
    // else.
    const leveldb::Slice behind_all("\xff\xff\xff\xff");
    db_->CompactRange(&behind_all, &behind_all);
  }

 private:
  leveldb::WriteOptions write_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

std::unique_ptr<Peer> OpenLevelDb(const PeerOptions& options) { return std::make_unique<LevelDbPeer>(options); }

}  // namespace varve::bench
