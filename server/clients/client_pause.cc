#include "server/clients/client_pause.h"

#include <algorithm>

#include "server/clients/client_state.h"
#include "util/base/assert.h"

namespace varve {

void ClientPause::Change(Kind kind) {
  const uint64_t number = (word_.load() | kKindBits) + 1;
  word_.store(number | static_cast<uint64_t>(kind));
  VARVE_ASSERT((word_.load() & kKindBits) == static_cast<uint64_t>(kind));
}

ClientPause::Kind ClientPause::Now() {
  if (!Any()) return Kind::kNone;
  absl::MutexLock lock(&mutex_);
  if (Any() && std::chrono::steady_clock::now() >= until_) Change(Kind::kNone);
  return static_cast<Kind>(word_.load() & kKindBits);
}

std::chrono::milliseconds ClientPause::Left() const {
  absl::MutexLock lock(&mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!Any() || now >= until_) return std::chrono::milliseconds(0);
  return std::chrono::ceil<std::chrono::milliseconds>(until_ - now);
}

void ClientPause::Begin(Kind kind, std::chrono::milliseconds how_long) {
  VARVE_ASSERT(kind != Kind::kNone && how_long.count() >= 0);
  const Kind before = Now();
  absl::MutexLock lock(&mutex_);
  const Time until = std::chrono::steady_clock::now() + how_long;
  until_ = before == Kind::kNone ? until : std::max(until_, until);
  Change(std::max(before, kind));
}

void ClientPause::End() {
  {
    absl::MutexLock lock(&mutex_);
    Change(Kind::kNone);
  }
  registry_.ForEach([](ClientState& client) {
    if (client.link.paused.load()) client.link.mailbox.Nudge();
  });
}

void ClientPause::NoteWaiting(ClientState* client, bool waits) {
  std::atomic<bool>& waited = client->link.paused;
  if (waited.load(std::memory_order_relaxed) == waits) [[likely]]
    return;
  waited.store(waits);
  waiting_.fetch_add(waits ? 1 : size_t{0} - 1, std::memory_order_relaxed);
}

}  // namespace varve
