// The part of an I/O loop that is for a store on other machines: no batch that asks it holds up the
// loop. What the store can be asked together goes out from here, and the batch is parked until it
// is answered, as one whose reads go to the disk is; what needs a thread goes to threads that may
// wait.
//
// At most kMostInFlight requests of the server are on their way, and no more once their batches
// hold kMostBytes. Beyond that, the batches of other connections wait in the order in which they
// came, and who comes later waits behind them; until a batch is done, nothing more is read from its
// connection.
//
// Requests for keys that are away (StoreReads::IsAway) do not take this room from the others: they
// have half as much of their own, and half of the threads. What comes beyond that is refused at
// once. A request that is not answered in time (StoreWaits::SlowAfter), as its machine has died
// just now, goes over into that room.
//
// Where the store lets it, the loop's thread drives what it asks (varve/store_driver.h): it then
// waits for answers and for its clients' sockets together, and no other thread is woken for either.
//
// Thread-safety: belongs to the loop's thread.
// Invariants: where a batch waits for room, prompt requests of this loop are on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "server/execution/server_state.h"
#include "server/net/session.h"
#include "structure/elastic_pool.h"
#include "varve/store_driver.h"

namespace varve {

class IoLoop;

class RemoteRounds {
 public:
  static constexpr size_t kMostInFlight = 16384;
  static constexpr size_t kMostBytes = 256u << 20;

  // Requires: the threads are stopped before the loop is destroyed.
  RemoteRounds(ServerState* server, ElasticPool* threads, IoLoop* loop);
  RemoteRounds(const RemoteRounds&) = delete;
  RemoteRounds& operator=(const RemoteRounds&) = delete;

  // Has the session's batch go on elsewhere, or wait until there is room. Returns true if the loop
  // goes on with it, as the next request is to be refused. Requires: session->ready(), and the next
  // request asks the store.
  [[nodiscard]] bool Execute(Session* session);
  // The store has answered the session, if that has asked in Execute().
  void NoteCompleted(Session* session) {
    if (session->remote.in_flight > 0) [[unlikely]]
      GiveBack(session);
  }
  // Once a second: what is not answered in time leaves its room to others.
  void NoteSlow();
  // The loop ends: what the session has asked is not awaited any more, if it was asked from here.
  static void Abandon(Session* session);
  // The thread begins to serve: it drives the store from now on until End(), where the store has it
  // so. `descriptor` can be read once the loop has something to do.
  void Begin(int descriptor);
  void End();
  bool drives() const { return driver_ != nullptr; }
  // Takes what has come from the store's machines.
  void Poll() {
    if (drives()) [[unlikely]]
      driver_->Poll();
  }
  // Waits until a batch is answered or the descriptor can be read, so many ms at most.
  // Requires: drives().
  void Wait(int timeout);
  // Adds the sessions whose batches were answered on this thread.
  void TakeAnswered(std::vector<std::shared_ptr<Session>>* sessions);

  // All of this round has been asked: the store may send it.
  void EndRound() {
    if (asked_) [[unlikely]]
      Push();
  }

 private:
  // A room has bounds of what may be on its way, and counts what is.
  struct Room {
    const size_t most;
    const size_t most_bytes;
    size_t in_flight = 0;  // requests
    size_t bytes = 0;      // of their batches
    size_t on_threads = 0;

    bool IsFull() const { return in_flight >= most || bytes >= most_bytes; }
    void Take(const Session::RemotePart& part);
    void GiveBack(const Session::RemotePart& part);
  };

  // Returns whether the keys of the next request are away. The I/O thread calls it, and a thread of
  // the pool for a batch that was handed over to it.
  bool IsAway(Session* session) const;
  // Has the session answer its next request with an error. Returns true.
  static bool Refuse(Session* session);
  // Notes that so many requests of the session are on their way.
  void NoteAsked(Session* session, size_t requests, size_t bytes, bool is_slow, bool on_thread);
  // Returns whether others have come before the session, and wait.
  bool ComesLater(const Session& session) const;
  void Wait(Session* session);
  // The store has answered the session, on any thread.
  void OnAnswered(std::shared_ptr<Session> session);
  // Return whether the session's batch is on its way.
  bool Ask(Session* session);
  bool HandOver(Session* session, bool is_away);
  void GiveBack(Session* session);
  // Has those who wait go on as far as there is room.
  void ReleaseWaiting();
  void ReleaseNext();
  void Push();

  ServerState* const server_;
  ElasticPool* const threads_;
  IoLoop* const loop_;
  const size_t loops_;
  const size_t most_slow_threads_;
  Room prompt_;
  Room slow_;
  bool asked_ = false;  // the store, in this round
  uint64_t last_order_ = 0;
  std::map<uint64_t, Session*> in_prompt_;  // whose requests are on their way in that room
  uint64_t last_ticket_ = 0;
  std::map<uint64_t, std::weak_ptr<Session>> waiting_;  // by their tickets
  std::unique_ptr<StoreDriver> driver_;
  std::vector<std::shared_ptr<Session>> answered_;  // on this thread
};

}  // namespace varve
