#include "server/execution/scan_cursors.h"

#include <random>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr int kCounterBits = 32;
constexpr uint64_t kCursorMask = (uint64_t{1} << 53) - 1;

}  // namespace

ScanCursors::ScanCursors() : ScanCursors(Limits()) {}

ScanCursors::ScanCursors(const Limits& limits)
    : limits_(limits), next_((uint64_t{std::random_device()()} << kCounterBits) & kCursorMask) {}

uint64_t ScanCursors::Add(uint64_t client, uint64_t user, std::string key, uint64_t previous) {
  const absl::MutexLock lock(&mutex_);
  do {
    next_ = (next_ + 1) & kCursorMask;
  } while (next_ == 0 || by_cursor_.contains(next_));
  Client& owner = clients_[client];
  owner.cursors.push_front(next_);
  entries_.push_front({next_, client, user, previous, std::move(key), owner.cursors.begin()});
  by_cursor_[next_] = entries_.begin();
  const size_t bytes = entries_.front().bytes();
  owner.bytes += bytes;
  bytes_ += bytes;
  while (owner.bytes > limits_.client_bytes && owner.cursors.size() > 1)
    Forget(owner.cursors.back());
  while (bytes_ > limits_.all_bytes && entries_.size() > 1) Forget(entries_.back().cursor);
  VARVE_ASSERT(entries_.size() == by_cursor_.size() && clients_.size() <= entries_.size());
  VARVE_ASSERT(entries_.front().cursor == next_);
  return next_;
}

std::optional<std::string> ScanCursors::Find(uint64_t cursor, uint64_t user) {
  const absl::MutexLock lock(&mutex_);
  const auto found = by_cursor_.find(cursor);
  if (found == by_cursor_.end() || found->second->user != user) return std::nullopt;
  Entry& entry = *found->second;
  entries_.splice(entries_.begin(), entries_, found->second);
  std::list<uint64_t>& of_client = clients_[entry.client].cursors;
  of_client.splice(of_client.begin(), of_client, entry.of_client);
  std::string key = entry.key;
  if (const uint64_t previous = std::exchange(entry.previous, 0); previous != 0) Forget(previous);
  return key;
}

size_t ScanCursors::bytes() const {
  const absl::MutexLock lock(&mutex_);
  return bytes_;
}

void ScanCursors::Forget(uint64_t cursor) {
  const auto found = by_cursor_.find(cursor);
  if (found == by_cursor_.end()) return;
  const Entry& entry = *found->second;
  const auto owner = clients_.find(entry.client);
  VARVE_ASSERT(owner != clients_.end() && !owner->second.cursors.empty());
  VARVE_ASSERT(bytes_ >= owner->second.bytes && owner->second.bytes >= entry.bytes());
  bytes_ -= entry.bytes();
  owner->second.bytes -= entry.bytes();
  owner->second.cursors.erase(entry.of_client);
  if (owner->second.cursors.empty()) clients_.erase(owner);
  entries_.erase(found->second);
  by_cursor_.erase(found);
}

}  // namespace varve
