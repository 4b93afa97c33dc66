// WiredTiger: a B-tree (its default) with a log and a cache of the size of block cache and write
// buffers together, as what was written stays in its cache; all else as it comes. Unsynced writes
// bring the log's bytes to the kernel (transaction_sync's method "none"), synced ones call fsync.
// There are no filters to set. A thread's session is opened once; a reader has one of its own, and
// each of its reads is a transaction of its own.
#include <fmt/format.h>

#include "benchmark/engine/peer.h"
#include "benchmark/process.h"

#ifdef VARVE_WIREDTIGER

#include <wiredtiger.h>

#include <algorithm>
#include <atomic>
#include <map>

namespace varve::bench {
namespace {

constexpr const char* kTable = "table:data";

void Check(int code) {
  if (code != 0) Fail(std::string("WiredTiger: ") + wiredtiger_strerror(code));
}

WT_ITEM ToItem(std::string_view text) {
  WT_ITEM item{};
  item.data = text.data();
  item.size = text.size();
  return item;
}
std::string_view ToView(const WT_ITEM& item) {
  return {static_cast<const char*>(item.data), item.size};
}

// A session with a cursor, of one thread at a time.
struct Session {
  explicit Session(WT_CONNECTION* connection) {
    Check(connection->open_session(connection, nullptr, nullptr, &session));
    Check(session->open_cursor(session, kTable, nullptr, "overwrite=true", &cursor));
  }

  WT_SESSION* session = nullptr;  // the connection closes it
  WT_CURSOR* cursor = nullptr;
};

class WiredTigerReader : public Reader {
 public:
  explicit WiredTigerReader(WT_CONNECTION* connection) : own_(connection) {}
  ~WiredTigerReader() override { Check(own_.session->close(own_.session, nullptr)); }

  bool Get(std::string_view key, std::string* value) override {
    EndView();
    WT_ITEM wanted = ToItem(key);
    own_.cursor->set_key(own_.cursor, &wanted);
    const int code = own_.cursor->search(own_.cursor);
    if (code == WT_NOTFOUND) return false;
    Check(code);
    WT_ITEM found{};
    Check(own_.cursor->get_value(own_.cursor, &found));
    value->assign(ToView(found));
    Check(own_.cursor->reset(own_.cursor));
    return true;
  }

  bool Seek(std::string_view key) override {
    EndView();
    Check(own_.session->begin_transaction(own_.session, "isolation=snapshot"));
    in_view_ = true;
    if (key.empty()) return Take(own_.cursor->next(own_.cursor));
    WT_ITEM wanted = ToItem(key);
    own_.cursor->set_key(own_.cursor, &wanted);
    int exact = 0;
    const int code = own_.cursor->search_near(own_.cursor, &exact);
    if (code == 0 && exact < 0) return Take(own_.cursor->next(own_.cursor));
    return Take(code);
  }

  bool Next() override { return Take(own_.cursor->next(own_.cursor)); }

 private:
  void EndView() {
    if (!in_view_) return;
    Check(own_.cursor->reset(own_.cursor));
    Check(own_.session->rollback_transaction(own_.session, nullptr));
    in_view_ = false;
  }

  bool Take(int code) {
    if (code == WT_NOTFOUND) return false;
    Check(code);
    WT_ITEM key{};
    WT_ITEM value{};
    Check(own_.cursor->get_key(own_.cursor, &key));
    Check(own_.cursor->get_value(own_.cursor, &value));
    key_ = ToView(key);
    value_ = ToView(value);
    return true;
  }

  Session own_;
  bool in_view_ = false;
};

class WiredTigerPeer : public Peer {
 public:
  explicit WiredTigerPeer(const PeerOptions& options) {
    std::string config =
        "create,session_max=600,log=(enabled=true),transaction_sync=(enabled=true,";
    config += options.synced ? "method=fsync)" : "method=none)";
    constexpr uint64_t kLeastCache = uint64_t{1} << 20;
    if (!options.defaults) {
      const uint64_t buffers = kWriteBuffers * options.memory.write_buffer;
      config += fmt::format(",cache_size={}",
                            std::max(kLeastCache, options.memory.block_cache + buffers));
    }
    Check(wiredtiger_open(options.dir.c_str(), nullptr, config.c_str(), &connection_));
    WT_SESSION* session = nullptr;
    Check(connection_->open_session(connection_, nullptr, nullptr, &session));
    Check(session->create(session, kTable, "key_format=u,value_format=u"));
    Check(session->close(session, nullptr));
  }
  ~WiredTigerPeer() override { Check(connection_->close(connection_, nullptr)); }

  void Put(std::string_view key, std::string_view value) override {
    InsertAt(OfThread()->cursor, key, value);
  }
  void Delete(std::string_view key) override {
    WT_CURSOR* const cursor = OfThread()->cursor;
    WT_ITEM at = ToItem(key);
    cursor->set_key(cursor, &at);
    const int code = cursor->remove(cursor);
    if (code != WT_NOTFOUND) Check(code);
  }
  void WriteBatch(std::span<const KeyValue> batch) override {
    const Session* const own = OfThread();
    Check(own->session->begin_transaction(own->session, "isolation=snapshot"));
    for (const auto& [key, value] : batch) InsertAt(own->cursor, key, value);
    Check(own->session->commit_transaction(own->session, nullptr));
  }
  std::unique_ptr<Reader> NewReader() override {
    return std::make_unique<WiredTigerReader>(connection_);
  }
  void Flush() override {
    const Session* const own = OfThread();
    Check(own->session->checkpoint(own->session, nullptr));
  }
  void Compact() override {
    const Session* const own = OfThread();
    Check(own->cursor->reset(own->cursor));
    Check(own->session->compact(own->session, kTable, nullptr));
  }

 private:
  static void InsertAt(WT_CURSOR* cursor, std::string_view key, std::string_view value) {
    WT_ITEM at = ToItem(key);
    WT_ITEM data = ToItem(value);
    cursor->set_key(cursor, &at);
    cursor->set_value(cursor, &data);
    Check(cursor->insert(cursor));
  }

  // Returns this thread's session. A new connection may lie at the address of an old one, so that
  // connections are known by a number.
  Session* OfThread() {
    thread_local std::map<uint64_t, std::unique_ptr<Session>> sessions;
    thread_local uint64_t last_number = 0;
    thread_local Session* last = nullptr;
    if (last_number == number_) return last;
    std::unique_ptr<Session>& session = sessions[number_];
    if (session == nullptr) session = std::make_unique<Session>(connection_);
    last_number = number_;
    last = session.get();
    return last;
  }

  static uint64_t NextNumber() {
    static std::atomic<uint64_t> numbers = 0;
    return ++numbers;
  }

  WT_CONNECTION* connection_ = nullptr;
  const uint64_t number_ = NextNumber();
};

}  // namespace

std::unique_ptr<Peer> OpenWiredTiger(const PeerOptions& options) {
  return std::make_unique<WiredTigerPeer>(options);
}

std::string WiredTigerMissing() { return ""; }

}  // namespace varve::bench

#else

namespace varve::bench {

std::unique_ptr<Peer> OpenWiredTiger(const PeerOptions&) { Fail(WiredTigerMissing()); }

std::string WiredTigerMissing() { return "the program was built without libwiredtiger-dev"; }

}  // namespace varve::bench

#endif
