// What the adapters of LevelDB and RocksDB share: RocksDB began as LevelDB, and where both still
// have the same calls they are made here, once. `Api` names an engine's types and holds what
// differs (leveldb_peer.cc, rocksdb_peer.cc):
//
//   types   DB, Slice, Status, ReadOptions, WriteOptions, Iterator, WriteBatch
//   kName   for messages
//   Renew(DB*, std::unique_ptr<Iterator>*)      an iterator over what there is now
//   Add(WriteBatch*, Slice key, Slice value)
//   Flush(DB*), Compact(DB*)
//
// Thread-safety: as peer.h says.
#pragma once

#include "benchmark/engine/peer.h"
#include "benchmark/process.h"

namespace varve::bench {

template <typename Api>
typename Api::Slice ToSlice(std::string_view text) {
  return {text.data(), text.size()};
}

template <typename Api>
void CheckLsm(const typename Api::Status& status) {
  if (!status.ok()) Fail(std::string(Api::kName) + ": " + status.ToString());
}

template <typename Api>
class LsmReader : public Reader {
 public:
  explicit LsmReader(typename Api::DB* db) : db_(db) {}

  bool Get(std::string_view key, std::string* value) override {
    const typename Api::Status status =
        db_->Get(typename Api::ReadOptions(), ToSlice<Api>(key), value);
    if (status.IsNotFound()) return false;
    CheckLsm<Api>(status);
    return true;
  }

  bool Seek(std::string_view key) override {
    Api::Renew(db_, &iterator_);
    iterator_->Seek(ToSlice<Api>(key));
    return Take();
  }

  bool Next() override {
    iterator_->Next();
    return Take();
  }

 protected:
  typename Api::DB* const db_;

 private:
  bool Take() {
    if (!iterator_->Valid()) {
      CheckLsm<Api>(iterator_->status());
      return false;
    }
    const typename Api::Slice key = iterator_->key();
    const typename Api::Slice value = iterator_->value();
    key_ = {key.data(), key.size()};
    value_ = {value.data(), value.size()};
    return true;
  }

  std::unique_ptr<typename Api::Iterator> iterator_;
};

// `ReaderType` is LsmReader<Api> or derived from it. The constructor of the derived class opens
// db_.
template <typename Api, typename ReaderType = LsmReader<Api>>
class LsmPeer : public Peer {
 public:
  void Put(std::string_view key, std::string_view value) override {
    CheckLsm<Api>(db_->Put(write_, ToSlice<Api>(key), ToSlice<Api>(value)));
  }
  void Delete(std::string_view key) override {
    CheckLsm<Api>(db_->Delete(write_, ToSlice<Api>(key)));
  }
  void WriteBatch(std::span<const KeyValue> batch) override {
    typename Api::WriteBatch updates;
    for (const auto& [key, value] : batch)
      Api::Add(&updates, ToSlice<Api>(key), ToSlice<Api>(value));
    CheckLsm<Api>(db_->Write(write_, &updates));
  }
  std::unique_ptr<Reader> NewReader() override { return std::make_unique<ReaderType>(db_.get()); }
  void Flush() override { Api::Flush(db_.get()); }
  void Compact() override { Api::Compact(db_.get()); }

 protected:
  LsmPeer(const typename Api::Options& options, const PeerOptions& peer) {
    write_.sync = peer.synced;
    typename Api::DB* opened = nullptr;
    CheckLsm<Api>(Api::DB::Open(options, peer.dir, &opened));
    db_.reset(opened);
  }

 private:
  typename Api::WriteOptions write_;
  std::unique_ptr<typename Api::DB> db_;
};

}  // namespace varve::bench
