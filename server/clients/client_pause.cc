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
  return NowLocked();
}

ClientPause::Kind ClientPause::NowLocked() {
  if (Any() && std::chrono::steady_clock::now() >= until_) Change(Kind::kNone);
  return static_cast<Kind>(word_.load() & kKindBits);
}

std::chrono::milliseconds ClientPause::Left() const {
  absl::MutexLock lock(&mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!Any() || now >= until_) return std::chrono::milliseconds(0);
  return std::chrono::ceil<std::chrono::milliseconds>(until_ - now);
}

void ClientPause::Begin(Kind kind, std::chrono::milliseconds how_long, Listener listener) {
  VARVE_ASSERT(kind != Kind::kNone && how_long.count() >= 0);
  absl::MutexLock lock(&mutex_);
  const Kind before = NowLocked();
  const Time now = std::chrono::steady_clock::now();
  until_ = before == Kind::kNone ? now + how_long : std::max(until_, now + how_long);
  Change(std::max(before, kind));
  listener(std::chrono::ceil<std::chrono::milliseconds>(until_ - now));
}

void ClientPause::End(Listener listener) {
  {
    absl::MutexLock lock(&mutex_);
    Change(Kind::kNone);
    listener(std::chrono::milliseconds(0));
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
