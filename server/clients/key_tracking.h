// The key tracking tells clients that keys which they may keep in caches of their own have changed
// (CLIENT TRACKING). A tracker is a client that wants to hear of it. It hears of the keys that it
// has read, or, when it broadcasts, of all keys that begin with one of its prefixes; a message
// names keys, or says (null) that any key may have changed. A tracker hears only of databases and
// namespaces that it has used since it began to track.
//
// No change is missed:
//   - a reader enters its keys into the table before it reads them, or before it takes the snapshot
//     that it reads at;
//   - a writer looks at the table after its write is visible (TrackedWrite);
//   - the message goes to the mailbox of the connection, which sends it behind the replies that are
//     under way, or closes when it can't hold it.
// A reader that saw the old value was in the table when the writer looked.
//
// Messages do not wait until the write is durable: they reveal no value.
//
// Thread-safety: all functions may be called on any thread; those that take the ClientState of the
// tracker only on the thread that executes for it. Any() costs one load.
// Invariants: a tracker and the target of a redirection are connections that have not been
// destroyed. The table holds at most kMaxBytes, and at most as many keys as SetMaxKeys() said but
// for those that the next calls take out of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/access/user_table.h"
#include "server/clients/client_registry.h"
#include "server/requests/request_batch.h"
#include "server/tracking/tracked_keys.h"
#include "server/tracking/tracked_prefixes.h"
#include "server/tracking/written_keys.h"

namespace varve {

class ClientMemory;
struct ClientState;
class InvalidationMessage;

class KeyTracking {
 public:
  static constexpr size_t kMaxBytes = 128u << 20;
  // Keys of one range that are told one by one; of more, any may have changed.
  static constexpr size_t kMostKeysOfRange = 1024;

  struct Totals {
    size_t keys = 0;
    size_t items = 0;  // clients of all keys
    size_t prefixes = 0;
  };

  // Requires: all outlive this object, and the mailboxes are gone before `memory` is.
  KeyTracking(ClientMemory* memory, const UserTable* users, const ClientRegistry* registry)
      : memory_(memory), users_(*users), registry_(*registry) {}

  // Returns whether there is a tracker. A client that reads after it became a tracker either sees
  // a write, or the thread that asks after that write is told of the client.
  bool Any() const { return count_.load() != 0; }
  size_t count() const { return count_.load(std::memory_order_relaxed); }
  Totals totals() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps no more keys than that from the next calls on; 0: as many as fit in kMaxBytes.
  void SetMaxKeys(size_t keys) {
    max_keys_.store(keys, std::memory_order_relaxed);
    untidy_.store(true, std::memory_order_relaxed);
  }

  // Makes the client a tracker by its modes (TrackingMode), or notes that they changed. Returns
  // false, and does nothing, if there is no client to redirect to.
  [[nodiscard]] bool Start(ClientState* client) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddPrefix(const ClientState& client, std::string_view prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires: the client's prefixes were removed.
  void Stop(ClientState* client) ABSL_LOCKS_EXCLUDED(mutex_);
  void RemovePrefix(const ClientState& client, std::string_view prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  // The connection ends: those that redirect to it hear that nothing comes any more.
  void EndTarget(const ClientState& client) ABSL_LOCKS_EXCLUDED(mutex_);

  // The tracker is about to read these keys in the database or namespace in use.
  void Remember(const ClientState& client, Arguments keys) ABSL_LOCKS_EXCLUDED(mutex_);
  // The tracker, which broadcasts, is about to read where it has not read before, or as another
  // user.
  void NotePlace(ClientState* client) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells of what was written by client `writer`, 0 if by none.
  void Invalidate(WrittenKeys* written, uint64_t writer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Client `reader` found that the key has expired, before the store removed it: tells the others
  // that have read it. Trackers that broadcast hear of the removal.
  void FoundExpired(NamespaceId space, std::string_view key, uint64_t reader)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells all trackers, or the one, that any key may have changed.
  void InvalidateAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void InvalidateAllOf(const ClientState& client) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes out of the table some of what is too much, or of no use because there is no tracker. To
  // be called now and then.
  void Tidy() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Tracker {
    ClientState* client = nullptr;
    uint64_t redirect = 0;
    bool broadcast = false;
    bool noloop = false;
    bool broken = false;  // the connection that it redirects to has gone
    // The databases and namespaces that it has used, with the names of these.
    absl::btree_map<NamespaceId, std::string> places;
    // The user as which a tracker that broadcasts is logged in, as of that epoch of the table of
    // users. Null: the user has gone.
    UserPointer user;
    uint64_t epoch = 0;
  };

  bool TooFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes up to `most` keys out of a table that is too full, and tells of them.
  void MakeRoom(size_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const Tracker& tracker, InvalidationMessage* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the clients, but for one that may keep the key and so stays in the table: the writer with
  // NOLOOP, or `reader`.
  void TellOfKey(NamespaceId space, std::string_view key, const TrackedKeys::ClientIds& clients,
                 uint64_t writer, uint64_t reader = 0) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellOfRange(const WrittenKeys::Range& range, uint64_t writer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellOfSpace(NamespaceId space) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Broadcast(const WrittenKeys& written, uint64_t writer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks the user up again if users have changed; if its rights may have changed, the tracker
  // drops what it holds.
  void LookUpUser(Tracker* tracker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayLearn(Tracker* tracker, const WrittenKeys::Key& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Tracker* Find(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClientMemory* const memory_;
  const UserTable& users_;
  const ClientRegistry& registry_;
  std::atomic<size_t> count_{0};
  std::atomic<size_t> max_keys_{0};
  std::atomic<bool> untidy_{false};
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, Tracker> trackers_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, ClientState*> targets_ ABSL_GUARDED_BY(mutex_);
  TrackedKeys keys_ ABSL_GUARDED_BY(mutex_);
  TrackedPrefixes prefixes_ ABSL_GUARDED_BY(mutex_);
};

// One write of the server beside the tracking: what it changes is noted before the commit, and told
// once it is visible.
//
//   TrackedWrite write(&tracking);
//   write.Note(batch);
//   ... the store commits the batch
//   write.Tell(client.id);
//
// Thread-safety: one thread at a time uses an object.
class TrackedWrite {
 public:
  explicit TrackedWrite(KeyTracking* tracking) : tracking_(*tracking), notes_(tracking->Any()) {}

  void Note(const WriteBatch& batch) {
    if (notes_) [[unlikely]]
      written_.AddBatch(batch);
  }
  void Forget() { written_ = WrittenKeys(); }
  // Requires: what was noted is visible.
  void Tell(uint64_t writer) {
    if (!tracking_.Any()) [[likely]]
      return;
    // A tracker that came after the keys could have been noted may have read any of them.
    notes_ ? tracking_.Invalidate(&written_, writer) : tracking_.InvalidateAll();
  }

 private:
  KeyTracking& tracking_;
  const bool notes_;
  WrittenKeys written_;
};

}  // namespace varve
