// The idle policy decides what an I/O loop does when it has nothing to do: it syncs the log itself,
// polls its sockets for a while, or sleeps.
//
// 1. Syncing. The log's threads have to be woken and then wake the loop; the loop's own thread,
//    where it would sleep otherwise, saves both changes of threads, and the disk is asked less
//    often, since what arrives meanwhile is written together. Without a pipeline 50 clients write
//    1.4 times as fast (docs/decisions/0053). But while a sync lasts nobody is served: it is not
//    for slow disks, nor for one of several loops, whose groups would be small, unless that loop
//    serves one client alone. Writes are kept back while there are requests to serve; after
//    kLongestKept the log's threads get them, so that the disk works beside the loop.
// 2. Polling (spin-then-park, Karlin et al. 1991). To be woken takes longer than a client nearby
//    needs for its next request. For one or two clients alone the loop looks at its sockets again
//    and again for kLongestPoll: one client gets 39,000 instead of 11,000 GETs a second. With more
//    clients a thread that slept serves better: while it polls, others can't run. Polling pays
//    while requests come within kLongestPoll and no other thread wants the processor; otherwise
//    only every kProbeEvery-th sleep tries again.
//
// Thread-safety: a policy belongs to one loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "absl/types/span.h"

namespace varve {

class IdlePolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr uint32_t kRecentRounds = 64;
  static constexpr std::chrono::microseconds kLongestKept{500};
  static constexpr std::chrono::milliseconds kSlowSync{1};
  // Rounds that the log's threads serve after a slow sync; twice as many after each further one.
  static constexpr uint32_t kFewestRoundsOff = 64, kMostRoundsOff = 4096;
  static constexpr std::chrono::microseconds kLongestPoll{50};
  static constexpr uint32_t kProbeEvery = 32;
  static constexpr int kMostCredit = 8;  // after many polls that paid; misses use it up
  static constexpr int kCreditPerFind = 1, kCostOfMiss = 2;

  // `is_only_loop`: the server has no other one. With one processor alone a poll would keep the
  // client that it waits for from running.
  explicit IdlePolicy(bool is_only_loop, unsigned processors = std::thread::hardware_concurrency())
      : is_only_loop_(is_only_loop), may_poll_(processors > 1) {}

  // A round served these clients. They are told apart by their addresses alone and may be gone.
  template <typename Client>
  void Served(absl::Span<Client* const> round) {
    if (round.size() > 2) {
      rounds_of_one_ = rounds_of_two_ = 0;
      return;
    }
    for (const void* const client : round) NoteClient(client);
    ++rounds_of_one_;
    ++rounds_of_two_;
  }
  // Returns whether the last kRecentRounds rounds served one client alone, or at most two.
  bool serves_one() const { return rounds_of_one_ >= kRecentRounds; }
  bool serves_at_most_two() const { return rounds_of_two_ >= kRecentRounds; }

  // Returns whether what this round and those before it wrote is kept back, so that the loop may
  // sync it. Called once after each round that wrote.
  [[nodiscard]] bool KeepsWrites(Time now);
  // The log's threads got what was kept back.
  void Pushed() { kept_since_.reset(); }
  // The loop's thread synced it, which took `taken`.
  void Synced(std::chrono::nanoseconds taken);

  // Returns whether to poll before this sleep. Called once before each sleep.
  [[nodiscard]] bool Polls();
  // Calls `look` until it returns true, or kLongestPoll is over; returns what it returned last.
  template <typename Look>
  [[nodiscard]] bool Poll(Look&& look) {
    const long pushed_off = TimesPushedOff();
    const Time end = std::chrono::steady_clock::now() + kLongestPoll;
    bool found = false;
    do {
      found = look();
    } while (!found && std::chrono::steady_clock::now() < end);
    Polled(found && TimesPushedOff() == pushed_off);
    return found;
  }
  // A poll has ended; `paid`: it found something before another thread wanted the processor.
  void Polled(bool paid);

 private:
  // Returns how often another thread took the processor while this one would have gone on.
  static long TimesPushedOff();
  void NoteClient(const void* client);

  const bool is_only_loop_;
  const bool may_poll_;
  const void* latest_ = nullptr;
  const void* other_ = nullptr;
  uint32_t rounds_of_one_ = 0;
  uint32_t rounds_of_two_ = 0;
  std::optional<Time> kept_since_;
  uint32_t rounds_off_ = 0;  // that the log's threads still serve
  uint32_t pause_ = kFewestRoundsOff;
  int credit_ = 0;
  uint32_t sleeps_ = 0;
};

}  // namespace varve
