// The context of a command: what its handler works with. It is made of three parts: the clock of
// its slice, the outcome of its reply, and, here, the store that it reads and writes.
//
// Thread-safety: one thread at a time uses a context.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/clients/client_state.h"
#include "server/execution/reply_outcome.h"
#include "server/execution/server_state.h"
#include "server/execution/slice_clock.h"
#include "server/requests/key_work.h"
#include "util/resp/resp_writer.h"
#include "varve/store.h"

namespace varve {

class CommandContext : public SliceClock, public ReplyOutcome {
 public:
  CommandContext(ServerState* of_server, ClientState* of_client, ByteBuffer* out)
      : SliceClock(/*is_inner=*/false),
        server(*of_server),
        store(*of_server->store),
        client(*of_client),
        reply(out, of_client->protocol),
        store_deadline_(of_server->store_waits.NewDeadline()) {}
  // The context of a command that EXEC executes, which works on `transaction`. Its time is that of
  // EXEC's own context (CountTo()).
  CommandContext(ServerState* of_server, ClientState* of_client, ByteBuffer* out,
                 StoreContents* transaction)
      : SliceClock(/*is_inner=*/true),
        server(*of_server),
        store(*transaction),
        client(*of_client),
        reply(out, of_client->protocol),
        in_transaction_(true),
        store_deadline_(of_server->store_waits.NewDeadline()) {}

  ServerState& server;
  // The store, or the transaction that EXEC executes. Commands that need more than its contents
  // take server.store.
  StoreContents& store;
  ClientState& client;
  RespWriter reply;

  // Returns the namespace that the command works in.
  NamespaceId space() const { return client.space; }
  void UseNamespace(WriteBatch* batch) const {
    batch->UseNamespace(space(), store.UsualExpiry(space()));
  }

  // The size of the largest value that the command may handle on this thread. An I/O thread serves
  // other clients too, which a larger value would hold up; a thread of the pool has SIZE_MAX.
  size_t max_value_bytes() const { return max_value_bytes_; }
  void set_max_value_bytes(size_t bytes) { max_value_bytes_ = bytes; }
  // Returns whether a value of `bytes` bytes is too large for this thread; then the request moves
  // to the pool.
  [[nodiscard]] bool NeedsPoolFor(size_t bytes) {
    if (bytes > max_value_bytes_) MoveToPool();
    return needs_pool();
  }
  // Reads a value of any size. The caller may answer any error by Fail(). If the value is too large
  // for this thread, the client never sees that reply, because the pool executes the request anew.
  [[nodiscard]] absl::StatusOr<ReadResult> Get(std::string_view key, std::string* value) {
    return GetIn(space(), key, value);
  }
  [[nodiscard]] absl::StatusOr<ReadResult> GetIn(NamespaceId of, std::string_view key,
                                                 std::string* value, bool with_metadata = false);
  // Reads all of a key but its value.
  [[nodiscard]] absl::StatusOr<ReadResult> LookUp(std::string_view key, bool with_metadata = false);

  // Returns an iterator as StoreReads::NewIterator does.
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper, SequenceNumber* durable_after) {
    if (prepared_ != nullptr) [[unlikely]]
      return std::move(prepared_);
    return store.NewIterator(options, lower, upper, durable_after);
  }
  // The first call of NewIterator() returns `prepared`, which shows what the command would read.
  void Prepare(std::unique_ptr<Iterator> prepared) { prepared_ = std::move(prepared); }
  bool is_prepared() const { return prepared_ != nullptr; }

  // Returns whether a key that is given this time goes at once. What a primary sends stays until
  // the primary removes it, as it may have been given more time meanwhile.
  bool GoesAtOnce(uint64_t expiry_ms) const {
    return !client.is_primary_link && expiry_ms <= store.NowMillis();
  }

  // Counts that a key was asked for.
  void CountLookup(std::string_view key, bool found) {
    (found ? server.statistics.keyspace_hits : server.statistics.keyspace_misses).Add(1);
    if (!found) Notify(kMissEvent, "keymiss", key);
  }
  // Notes that a key was used, which was found with a value of this version: evictions spare it.
  void NoteUse(NamespaceId of, std::string_view key, SequenceNumber version) {
    if (!client.modes.no_touch) server.evictor.NoteRead(of, key, version);
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
  // Tells that a value was written.
  void NotifyWritten(std::string_view event, std::string_view key, bool existed) {
    if (!existed) Notify(kNewEvent, "new", key);
    Notify(kStringEvent, event, key);
  }
  struct KeyEvent {
    NamespaceId space;
    std::string_view event;
    std::string key;
  };
  // Returns the events that EXEC is to tell of.
  const std::vector<KeyEvent>& events() const { return events_; }

  // Notes that two databases have exchanged what they hold, once that is submitted. The evictor is
  // told; inside EXEC, it is told when that has committed.
  void NoteSwap(NamespaceId one, NamespaceId other) {
    if (in_transaction_) {
      swaps_.emplace_back(one, other);
    } else {
      server.evictor.NoteSwap(one, other);
    }
  }
  // Returns the databases that the transaction exchanges.
  const std::vector<std::pair<NamespaceId, NamespaceId>>& swaps() const { return swaps_; }

  // Returns when the store has to have answered what the command asks it, all calls together; of a
  // reply that takes several slices, what one slice asks. EXEC has one of its own.
  StoreWaits::Time store_deadline() const { return store_deadline_; }

  // Returns whether EXEC executes the command.
  bool in_transaction() const { return in_transaction_; }

  // Returns the options of the command's writes. A thread that serves others does not sleep while
  // another one has the exclusive right to write (Store::BeginExclusiveWrite). Then the write is
  // Cancelled, and Fail() moves the request to the pool.
  WriteOptions write_options() const {
    WriteOptions options;
    options.waits_for_exclusive_write = max_value_bytes_ == SIZE_MAX;
    options.deadline = store_deadline_;
    return options;
  }
  // Commits `batch`, as StoreWrites::Submit does, and tells those who track its keys. All writes of
  // commands go through this function or Update() (server/execution/key_update.h).
  // `independent_keys` as in WriteOptions.
  [[nodiscard]] absl::StatusOr<CommitResult> Commit(WriteBatch* batch,
                                                    bool independent_keys = false);
  // Does `write`, and again once room was made for it (Evictor::WriteWithRoom). Inside EXEC it is
  // EXEC's commit that makes room.
  [[nodiscard]] absl::StatusOr<CommitResult> WriteWithRoom(
      const EvictionNeed& need, const WriteOptions& options,
      absl::FunctionRef<absl::StatusOr<CommitResult>()> write) {
    return in_transaction_ ? write() : server.evictor.WriteWithRoom(need, options, write);
  }
  // Commits `batch`; the reply depends on it. False: it failed, and the error was answered.
  [[nodiscard]] bool Submit(WriteBatch* batch);

  // Notes that a batch with operations was committed: as the client's last write, or, inside EXEC,
  // that there is a write.
  void NoteChange(const CommitResult& committed) {
    changed_ = true;
    if (!in_transaction_) client.NoteWrite(committed);
  }
  bool changed() const { return changed_; }

  // Inside EXEC: where writes are noted until the transaction has committed. Else null.
  TrackedWrite* tracked_write() const { return tracked_write_; }
  void set_tracked_write(TrackedWrite* write) { tracked_write_ = write; }

  // Notes that something was submitted: the store must be pushed before replies leave.
  void Submitted() {
    submitted_ = true;
    max_value_bytes_ = SIZE_MAX;
  }
  bool submitted() const { return submitted_; }

  // Writes `status` as an error reply, with `note` behind it. Cancelled means that this thread
  // can't execute the request, which moves to the pool.
  void Fail(const absl::Status& status, std::string_view note = {}) {
    if (absl::IsCancelled(status)) MoveToPool();
    reply.Error(ErrorText(status).append(note));
  }

  static std::string ErrorText(const absl::Status& status);

 private:
  absl::StatusOr<ReadResult> Read(ReadOptions options, std::string_view key, std::string* value);
  void Tell(NamespaceId of, std::string_view event, std::string_view key);

  std::vector<KeyEvent> events_;
  std::vector<std::pair<NamespaceId, NamespaceId>> swaps_;
  size_t max_value_bytes_ = SIZE_MAX;
  const bool in_transaction_ = false;
  const StoreWaits::Time store_deadline_;
  std::unique_ptr<Iterator> prepared_;
  TrackedWrite* tracked_write_ = nullptr;
  bool submitted_ = false;
  bool changed_ = false;
};

// The reply to an argument that has to be an integer, in Redis' words.
inline constexpr std::string_view kNoInteger = "ERR value is not an integer or out of range";
// Stands behind the error of a deletion that is no single step.
inline constexpr std::string_view kOthersMayBeDeleted =
    "; other keys of the command may have been deleted";

// Returns whether a write that ended so may be visible: when the log fails, it is not known.
inline bool MayBeVisible(const absl::Status& committed) {
  return committed.ok() || absl::IsUnavailable(committed);
}

// Returns options for a read that does not wait in the store until what it read is durable; the
// reply waits instead.
inline ReadOptions NoWaitReadOptions(NamespaceId space) {
  ReadOptions options;
  options.space = space;
  options.wait_until_durable = false;
  return options;
}

// Returns a snapshot for several reads of one reply. Null where the store has none: each read shows
// what is there at its time.
inline std::shared_ptr<const Snapshot> SnapshotOfReply(StoreContents& store) {
  return store.capabilities().snapshots ? store.GetSnapshot() : nullptr;
}

// Returns whether the sizes of ranges may be estimated, which a store does of its present alone, if
// at all. Where they may not, a reply with sizes reads the keys.
inline bool EstimatesSizes(const CommandContext& context) {
  return &context.store == context.server.store &&
         context.server.store->capabilities().size_estimates;
}

inline constexpr size_t kReadTogetherBytes = 1u << 20;
// Returns NoWaitReadOptions() for a MultiGet of keys whose values may be of any size. They bound
// the memory of the values that are read together.
inline ReadOptions NoWaitMultiGetOptions(NamespaceId space, size_t max_value_bytes) {
  ReadOptions options = NoWaitReadOptions(space);
  options.max_bytes = kReadTogetherBytes;
  options.max_value_bytes = max_value_bytes;
  return options;
}

// Returns how many of the results were read, at least the first unless that is too large. The
// others are to be read anew.
inline size_t CountRead(absl::Span<const MultiGetResult> results) {
  size_t count = 0;
  while (count < results.size() && results[count].read && !results[count].result.too_large) ++count;
  return count;
}

}  // namespace varve
