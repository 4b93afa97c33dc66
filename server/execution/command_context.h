// What a command's handler works with. Used by one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/clients/client_state.h"
#include "server/execution/server_state.h"
#include "server/requests/key_work.h"
#include "util/resp/resp_writer.h"
#include "varve/store.h"

namespace varve {

class CommandContext;

// A reply that is produced in slices, so that its length isn't bounded by memory.
class ReplyStream {
 public:
  enum class Progress {
    kMore,
    kDone,
    kBroken,  // an error after the reply began: only closing the connection can tell the client
  };
  virtual ~ReplyStream() = default;
  // Writes about `budget` bytes more. It may write nothing yet (kMore): where it works for long, it
  // ends when CommandContext::SliceSpent().
  virtual Progress Produce(CommandContext& context, size_t budget) = 0;
  // The client takes nothing at present: gives back what would keep files and memory of the store
  // in use until it goes on.
  virtual void Rest() {}
};

class CommandContext {
 public:
  // How long a command that reads many keys may keep its thread from others. A change of turns
  // costs about 1 % of it.
  static constexpr std::chrono::microseconds kSlice{500};

  CommandContext(ServerState* of_server, ClientState* of_client, ByteBuffer* out)
      : server(*of_server),
        store(*of_server->store),
        client(*of_client),
        reply(out, of_client->protocol) {}
  // For commands that EXEC executes: they work on `transaction`.
  CommandContext(ServerState* of_server, ClientState* of_client, ByteBuffer* out,
                 StoreContents* transaction)
      : server(*of_server),
        store(*transaction),
        client(*of_client),
        reply(out, of_client->protocol),
        in_transaction_(true) {}

  ServerState& server;
  // The store, or the transaction that EXEC executes. Commands that need more than its contents
  // take server.store.
  StoreContents& store;
  ClientState& client;
  RespWriter reply;

  // Where the command works.
  NamespaceId space() const { return client.space; }
  void UseNamespace(WriteBatch* batch) const {
    batch->UseNamespace(space(), store.UsualExpiry(space()));
  }

  // A value of more bytes would hold up everybody whom this thread serves. SIZE_MAX: it serves
  // nobody else.
  size_t most_here() const { return most_here_; }
  void set_most_here(size_t bytes) { most_here_ = bytes; }
  // The request is to be executed anew, where large values do no harm: what it has written so far
  // is not sent. Not after it has changed anything.
  void GoElsewhere() { elsewhere_ = true; }
  bool elsewhere() const { return elsewhere_; }
  // True, and so decided, when a value of `bytes` bytes is too large for here.
  [[nodiscard]] bool BelongsElsewhere(size_t bytes) {
    if (bytes > most_here_) elsewhere_ = true;
    return elsewhere_;
  }
  // Reads a value of any size. An error, whatever it is, may be answered by Fail(): where the value
  // is too large for here, nobody will see it.
  [[nodiscard]] absl::StatusOr<ReadResult> Get(std::string_view key, std::string* value) {
    return GetIn(space(), key, value);
  }
  [[nodiscard]] absl::StatusOr<ReadResult> GetIn(NamespaceId of, std::string_view key,
                                                 std::string* value);
  // The same without the value itself.
  [[nodiscard]] absl::StatusOr<ReadResult> LookUp(std::string_view key);

  // The reply must not leave before `durable_after` is durable.
  void DependOn(SequenceNumber durable_after) {
    if (durable_after > durable_after_) durable_after_ = durable_after;
  }
  SequenceNumber TakeGate() { return std::exchange(durable_after_, kNoSequence); }
  SequenceNumber durable_after() const { return durable_after_; }

  // For the statistics: a key was asked for.
  void CountLookup(std::string_view key, bool found) {
    (found ? server.statistics.keyspace_hits : server.statistics.keyspace_misses).Add(1);
    if (!found) Notify(kMissEvent, "keymiss", key);
  }

  // Tells of what was done to `key` (server/clients/keyspace_events.h), once it is submitted and
  // the reply depends on it; inside EXEC, those who listen hear of it when that has committed.
  // `event` is a literal.
  void Notify(KeyEventClass which, std::string_view event, std::string_view key) {
    NotifyIn(space(), which, event, key);
  }
  void NotifyIn(NamespaceId of, KeyEventClass which, std::string_view event, std::string_view key) {
    if (server.clients.events.Tells(which)) [[unlikely]]
      Tell(of, event, key);
  }
  // A value was written.
  void NotifyWritten(std::string_view event, std::string_view key, bool existed) {
    if (!existed) Notify(kNewEvent, "new", key);
    Notify(kStringEvent, event, key);
  }
  struct KeyEvent {
    NamespaceId space;
    std::string_view event;
    std::string key;
  };
  // Those that EXEC is to tell of.
  const std::vector<KeyEvent>& events() const { return events_; }

  // EXEC executes it.
  bool in_transaction() const { return in_transaction_; }
  // There, the time it takes is that of `slice`, EXEC's own context. Null: nobody else gets a turn
  // before it is done.
  void CountTo(CommandContext* slice) { slice_ = slice; }
  // The request waits for EXEC; its reply says so.
  void NotExecuted() { executed_ = false; }
  bool TakeExecuted() { return std::exchange(executed_, true); }

  // There is no reply at all.
  void NoReply() { silent_ = true; }
  // What was written leaves even where CLIENT REPLY keeps replies back.
  void Pushed() { pushed_ = true; }
  bool TakeSilent() { return std::exchange(silent_, false); }
  bool TakePushed() { return std::exchange(pushed_, false); }

  // The rest of the reply comes from `stream`.
  void Stream(std::unique_ptr<ReplyStream> stream) { stream_ = std::move(stream); }
  std::unique_ptr<ReplyStream> TakeStream() { return std::move(stream_); }

  // For its writes: a thread that serves others doesn't sleep while somebody has the turn to write
  // (Store::BeginExclusiveWrite). Then the write is Cancelled, and Fail() sends the request
  // elsewhere.
  WriteOptions write_options() const {
    WriteOptions options;
    options.waits_for_exclusive_write = most_here_ == SIZE_MAX;
    return options;
  }
  // Submits `batch`; the reply depends on it. False: it failed, and the error was answered.
  [[nodiscard]] bool Submit(WriteBatch* batch);

  // Something was submitted: the store must be pushed before replies leave.
  void Submitted() {
    submitted_ = true;
    most_here_ = SIZE_MAX;
  }
  bool submitted() const { return submitted_; }

  // To be asked once for each key that a stream walks over, or after work worth `keys` of them:
  // true when others should get their turn, see kSlice. Looks at the clock only now and then; after
  // a true answer it stays true.
  bool SliceSpent(size_t keys = 1);
  // What was done makes work for others of this thread: counts as if it had been done in this
  // slice.
  void MakeWork(std::chrono::nanoseconds time);
  bool slice_spent() const { return slice_spent_; }

  // There is no reply: the connection closes once those before it have left.
  void CloseWithoutReply() { closes_ = true; }
  bool closes() const { return closes_; }

  // Writes `status` as an error reply. Cancelled: it can't be done here, see GoElsewhere().
  void Fail(const absl::Status& status) {
    if (absl::IsCancelled(status)) GoElsewhere();
    reply.Error(ErrorText(status));
  }

  static std::string ErrorText(const absl::Status& status);

 private:
  // When it is to end.
  std::chrono::steady_clock::time_point& BeginSlice();
  absl::StatusOr<ReadResult> Read(ReadOptions options, std::string_view key, std::string* value);
  void Tell(NamespaceId of, std::string_view event, std::string_view key);

  SequenceNumber durable_after_ = kNoSequence;
  std::unique_ptr<ReplyStream> stream_;
  std::vector<KeyEvent> events_;
  size_t most_here_ = SIZE_MAX;
  const bool in_transaction_ = false;
  CommandContext* slice_ = nullptr;
  bool executed_ = true;
  bool elsewhere_ = false;
  bool submitted_ = false;
  bool silent_ = false;
  bool pushed_ = false;
  bool closes_ = false;
  size_t keys_to_look_ = 0;  // at the clock
  bool slice_spent_ = false;
  std::chrono::steady_clock::time_point slice_end_{};  // set by the first look
};

// Reads don't wait in the store: the gate of the reply does.
inline ReadOptions GatedRead(NamespaceId space) {
  ReadOptions options;
  options.space = space;
  options.wait_until_durable = false;
  return options;
}

// The same for several keys, whose values may be of any size: bounds the memory of what is read
// together.
inline constexpr size_t kReadTogetherBytes = 1u << 20;
inline ReadOptions GatedReads(NamespaceId space, size_t max_value_bytes) {
  ReadOptions options = GatedRead(space);
  options.max_bytes = kReadTogetherBytes;
  options.max_value_bytes = max_value_bytes;
  return options;
}

// How many of them were read, at least the first unless that is too large. The others are to be
// read anew.
inline size_t CountRead(absl::Span<const MultiGetResult> results) {
  size_t count = 0;
  while (count < results.size() && results[count].read && !results[count].result.too_large) ++count;
  return count;
}

}  // namespace varve
