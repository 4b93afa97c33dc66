// The part of an I/O loop that is for a store on other machines: no batch that asks it holds up the
// loop. What the store can be asked together goes out from here, and the batch is parked until it
// is answered, as one whose reads go to the disk is; what needs a thread goes to threads that may
// wait.
//
// At most kMostInFlight requests of the server are on their way. Beyond that, the batches of other
// connections wait in the order in which they came, and who comes later waits behind them; until a
// batch is done, nothing more is read from its connection.
//
// Thread-safety: belongs to the loop's thread.
// Invariants: where a batch waits for room, requests of this loop are on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "server/execution/server_state.h"
#include "server/net/session.h"
#include "structure/elastic_pool.h"

namespace varve {

class IoLoop;

class RemoteRounds {
 public:
  static constexpr size_t kMostInFlight = 16384;

  // Requires: the threads are stopped before the loop is destroyed.
  RemoteRounds(ServerState* server, ElasticPool* threads, IoLoop* loop);
  RemoteRounds(const RemoteRounds&) = delete;
  RemoteRounds& operator=(const RemoteRounds&) = delete;

  // Has the session's batch go on elsewhere, or wait until there is room. Requires:
  // session->ready(), and the next request asks the store.
  void Execute(Session* session);
  // The store has answered the session, if that has asked in Execute().
  void NoteCompleted(Session* session) {
    if (session->remote.in_flight > 0) [[unlikely]]
      GiveBack(session);
  }
  // The loop ends: what the session has asked is not awaited any more, if it was asked from here.
  static void Abandon(Session* session);
  // All of this round has been asked: the store may send it.
  void EndRound() {
    if (asked_) [[unlikely]]
      Push();
  }

 private:
  // Returns whether others have come before the session, and wait.
  bool ComesLater(const Session& session) const;
  void Wait(Session* session);
  // Return whether the session's batch is on its way.
  bool Ask(Session* session);
  bool HandOver(Session* session);
  void GiveBack(Session* session);
  void ReleaseNext();
  void Push();

  ServerState* const server_;
  ElasticPool* const threads_;
  IoLoop* const loop_;
  const size_t most_;  // requests of this loop
  size_t in_flight_ = 0;
  bool asked_ = false;  // the store, in this round
  uint64_t last_ticket_ = 0;
  std::map<uint64_t, std::weak_ptr<Session>> waiting_;  // by their tickets
};

}  // namespace varve
