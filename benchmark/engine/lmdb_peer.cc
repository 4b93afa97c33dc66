// LMDB: one write transaction a Put or batch; MDB_NOSYNC unless writes are synced, MDB_WRITEMAP
// off. It has no caches or filters of its own to set: it reads from the page cache through its map.
// A reader keeps its read transaction and renews it for each read, which is its cheapest way. Where
// memory is short, reading ahead is off (MDB_NORDAHEAD), unless its defaults are asked for. There
// is nothing to compact.
#include <lmdb.h>

#include "benchmark/engine/peer.h"
#include "benchmark/process.h"

namespace varve::bench {
namespace {

constexpr size_t kMapBytes = size_t{64} << 30;
constexpr unsigned kMaxReaders = 512;

MDB_val ToVal(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string_view ToView(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

void Check(int code) {
  if (code != MDB_SUCCESS) Fail(std::string("LMDB: ") + mdb_strerror(code));
}

class LmdbReader : public Reader {
 public:
  LmdbReader(MDB_env* env, MDB_dbi dbi) : dbi_(dbi) {
    Check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn_));
    Check(mdb_cursor_open(txn_, dbi_, &cursor_));
    mdb_txn_reset(txn_);
  }
  ~LmdbReader() override {
    mdb_cursor_close(cursor_);
    mdb_txn_abort(txn_);
  }

  bool Get(std::string_view key, std::string* value) override {
    Renew();
    MDB_val wanted = ToVal(key);
    MDB_val found;
    const int code = mdb_get(txn_, dbi_, &wanted, &found);
    if (code == MDB_NOTFOUND) return false;
    Check(code);
    value->assign(ToView(found));
    return true;
  }

  bool Seek(std::string_view key) override {
    Renew();
    Check(mdb_cursor_renew(txn_, cursor_));
    MDB_val at = ToVal(key);
    MDB_val value;
    return Take(mdb_cursor_get(cursor_, &at, &value, key.empty() ? MDB_FIRST : MDB_SET_RANGE), at,
                value);
  }

  bool Next() override {
    MDB_val at;
    MDB_val value;
    return Take(mdb_cursor_get(cursor_, &at, &value, MDB_NEXT), at, value);
  }

 private:
  void Renew() {
    mdb_txn_reset(txn_);
    Check(mdb_txn_renew(txn_));
  }

  bool Take(int code, const MDB_val& key, const MDB_val& value) {
    if (code == MDB_NOTFOUND) return false;
    Check(code);
    key_ = ToView(key);
    value_ = ToView(value);
    return true;
  }

  MDB_txn* txn_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  const MDB_dbi dbi_;
};

class LmdbPeer : public Peer {
 public:
  explicit LmdbPeer(const PeerOptions& options) {
    Check(mdb_env_create(&env_));
    Check(mdb_env_set_mapsize(env_, kMapBytes));
    Check(mdb_env_set_maxreaders(env_, kMaxReaders));
    // MDB_NOTLS ties a read transaction to its Reader instead of to a thread.
    unsigned flags = MDB_NOTLS;
    if (!options.synced) flags |= MDB_NOSYNC;
    if (options.short_of_memory && !options.defaults) flags |= MDB_NORDAHEAD;
    Check(mdb_env_open(env_, options.dir.c_str(), flags, 0644));
    MDB_txn* txn = nullptr;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    Check(mdb_dbi_open(txn, nullptr, MDB_CREATE, &dbi_));
    Check(mdb_txn_commit(txn));
  }
  ~LmdbPeer() override { mdb_env_close(env_); }

  void Put(std::string_view key, std::string_view value) override {
    const KeyValue one(key, value);
    WriteBatch({&one, 1});
  }
  void Delete(std::string_view key) override {
    MDB_txn* txn = nullptr;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    MDB_val at = ToVal(key);
    const int code = mdb_del(txn, dbi_, &at, nullptr);
    if (code != MDB_NOTFOUND) Check(code);
    Check(mdb_txn_commit(txn));
  }
  void WriteBatch(std::span<const KeyValue> batch) override {
    MDB_txn* txn = nullptr;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    for (const auto& [key, value] : batch) {
      MDB_val at = ToVal(key);
      MDB_val data = ToVal(value);
      Check(mdb_put(txn, dbi_, &at, &data, 0));
    }
    Check(mdb_txn_commit(txn));
  }
  std::unique_ptr<Reader> NewReader() override { return std::make_unique<LmdbReader>(env_, dbi_); }
  void Flush() override { Check(mdb_env_sync(env_, 1)); }
  void Compact() override {}

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
};

}  // namespace

std::unique_ptr<Peer> OpenLmdb(const PeerOptions& options) {
  return std::make_unique<LmdbPeer>(options);
}

}  // namespace varve::bench
