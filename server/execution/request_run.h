// A run is a list of neighbouring requests of one kind, GETs or plain SETs, that one call of the
// store answers: the GETs are read together at one snapshot, so that their cache misses overlap,
// and the SETs are committed together, so that the commit is paid once. A run may span several
// connections: their clients wrote side by side, so any order among them is right. This is the one
// way in which GETs and plain SETs are answered; a single request is a run of one. Only requests
// inside EXEC, those of clients that are Restricted(), and those with options go through their
// handlers.
//
//   RequestRun& run = RequestRun::OfThread();
//   run.Begin(kind, server, max_value_bytes);
//   run.Take(&cursor, limit);     // once for each connection
//   outcome = run.Execute();      // moves each cursor behind what was answered
//   run.Account(nanos);           // what the call took
//
// Thread-safety: each thread has a run of its own, whose memory it keeps from one run to the next.
// Invariants: parts hold consecutive requests of distinct cursors, in the order of the keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/clients/client_state.h"
#include "server/clients/pending_replies.h"
#include "server/execution/server_state.h"
#include "server/requests/request_batch.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

// The place in one connection's batch up to which its requests are answered.
struct BatchCursor {
  ClientState* client = nullptr;
  const RequestBatch* batch = nullptr;
  size_t next = 0;                    // the first request that is not answered
  PendingReplies* replies = nullptr;  // where answers go
  bool submitted = false;             // something was submitted to the store
  size_t on_thread = SIZE_MAX;        // a request that a RemoteRun leaves to a thread that may wait
};

class RequestRun {
 public:
  enum class Kind : uint8_t { kGets, kSets };
  enum class Outcome : uint8_t {
    kAnswered,   // some requests of the first part, or all of all parts, are answered
    kNeedsPool,  // nothing is answered: the first request moves to the pool
    kApart,      // nothing is answered: a quota refuses the writes together
  };

  static constexpr size_t kMaxGets = 64;
  static constexpr size_t kMaxSets = 256;

  static RequestRun& OfThread();

  // Begins a run without requests. A value of more than `max_value_bytes` is not read here;
  // SIZE_MAX on a thread that may block.
  void Begin(Kind kind, ServerState* server, size_t max_value_bytes);

  // Takes requests from the front of `cursor`, at most `limit` and as many as fit; returns how
  // many. GETs join only those of one namespace. Requires: the cursor's replies are set, and the
  // cursor is no part of the run yet.
  size_t Take(BatchCursor* cursor, size_t limit);

  // How many requests the run holds, and how many more it may take.
  size_t size() const { return size_; }
  size_t room() const { return (kind_ == Kind::kGets ? kMaxGets : kMaxSets) - size_; }

  // Executes the run and answers it. A part whose values are too large for this thread, or of which
  // not all was read, is answered up to there. Requires: size() > 0.
  Outcome Execute();

  // Counts what was answered for the statistics, where Execute() took `nanos`, and shows it to the
  // slow log.
  void Account(uint64_t nanos) const;

 private:
  struct Part {
    BatchCursor* cursor;
    size_t first;  // request of the batch
    size_t count;  // requests taken, and after Execute() those answered
  };

  bool Fits(const BatchCursor& cursor, const RequestBatch::Request& request) const;
  // Returns whether the requests of a client are refused for what this server follows, or for the
  // lack of followers.
  bool IsRefused(const ClientState& client) const;
  // Returns whether only a count can tell that the SETs of `batch` stay within maxmemory, or there
  // is no room on disk.
  bool MayExceedBounds(const RequestBatch& batch) const;
  Outcome ExecuteGets();
  Outcome ExecuteSets();
  // Leaves the SETs unanswered.
  Outcome RefuseSets(Outcome outcome);
  absl::Status Read(absl::Span<MultiGetResult> results) const;
  void AnswerGets(const Part& part, const absl::Status& status, absl::Span<MultiGetResult> results);
  void AnswerSets(const Part& part, const absl::StatusOr<CommitResult>& committed);
  // Tells those who track the keys that were set.
  void TellOfSets() const;
  // Shows what was answered to MONITOR and CLIENT LIST, and moves the cursor.
  void FinishPart(const Part& part);

  Kind kind_ = Kind::kGets;
  ServerState* server_ = nullptr;
  size_t max_value_bytes_ = SIZE_MAX;
  NamespaceId space_ = kDefaultNamespace;  // of GETs
  size_t size_ = 0;
  std::vector<Part> parts_;
  std::array<std::string_view, kMaxGets> keys_;
  std::array<MultiGetResult, kMaxGets> results_;
  WriteBatch writes_;
};

}  // namespace varve
