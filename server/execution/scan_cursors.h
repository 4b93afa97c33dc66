// The cursors of unfinished SCANs: a number for the client, a place in key order for the server.
//
// A cursor is good until the server stops or until it is forgotten. Bounded are the bytes kept for
// one connection and for all: the cursor that was not used for longest goes first, that of the
// connection itself before that of others, so that no client that begins scans and leaves them
// takes away another one's. A scan keeps two: when a cursor is used, the one before it goes, so a
// request can be sent again when its reply was lost. Numbers begin at a place that differs from
// start to start, so that a cursor of an earlier start is unknown, not wrong. They have at most 53
// bits: some clients keep them as doubles.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class ScanCursors {
 public:
  struct Limits {
    size_t all_bytes = 16u << 20;
    size_t client_bytes = 1u << 20;
  };
  // Bytes that a cursor takes beside its key.
  static constexpr size_t kOverhead = 256;

  ScanCursors();
  explicit ScanCursors(const Limits& limits);

  // Returns a cursor, never 0, for a scan by connection `client` that goes on with the keys from
  // `key` on. `user`: User::identity of who scans; `previous`: the cursor that it went on from, 0
  // if it began.
  uint64_t Add(uint64_t client, uint64_t user, std::string key, uint64_t previous);

  // Returns the key from which the scan goes on; nothing for a cursor that is unknown, forgotten or
  // another user's, whose replies depend on keys that this one may not read.
  std::optional<std::string> Find(uint64_t cursor, uint64_t user);

  size_t bytes() const;

 private:
  struct Entry {
    uint64_t cursor;
    uint64_t client;
    uint64_t user;
    uint64_t previous;
    std::string key;
    std::list<uint64_t>::iterator of_client;  // its place in Client::cursors

    size_t bytes() const { return key.size() + kOverhead; }
  };
  struct Client {
    size_t bytes = 0;
    std::list<uint64_t> cursors;  // the last used first
  };

  void Forget(uint64_t cursor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  uint64_t next_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the last used first
  absl::flat_hash_map<uint64_t, std::list<Entry>::iterator> by_cursor_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Client> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
