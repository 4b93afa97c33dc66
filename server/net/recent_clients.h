// Whether a loop has served one client alone lately, or two, so that it may do what would be wrong
// with more of them: as one of several loops, write the log while nobody else is likely to wait;
// keep the processor until the next request comes. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>

namespace varve {

template <typename Client>
class RecentClients {
 public:
  static constexpr uint32_t kRounds = 64;  // that make "lately"

  bool one() const { return rounds_of_one_ >= kRounds; }
  bool at_most_two() const { return rounds_of_two_ >= kRounds; }

  // A round served these. Clients are told apart by their addresses alone; they may be gone.
  template <typename Round>
  void Served(const Round& round) {
    if (round.size() > 2) {
      rounds_of_one_ = rounds_of_two_ = 0;
      return;
    }
    for (const Client* const client : round) {
      if (client == latest_) continue;
      rounds_of_one_ = 0;
      if (client != other_) rounds_of_two_ = 0;
      other_ = std::exchange(latest_, client);
    }
    ++rounds_of_one_;
    ++rounds_of_two_;
  }

 private:
  const Client* latest_ = nullptr;
  const Client* other_ = nullptr;
  uint32_t rounds_of_one_ = 0;
  uint32_t rounds_of_two_ = 0;
};

}  // namespace varve
