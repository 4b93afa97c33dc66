#include "server/replication/replication_state.h"

#include <random>

namespace varve {
namespace {

std::string RandomId() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr size_t kSize = 40;
  std::random_device random;
  std::string id;
  while (id.size() < kSize) id.push_back(kDigits[random() % kDigits.size()]);
  return id;
}

}  // namespace

ReplicationState::ReplicationState() : id_(RandomId()) {}

PrimaryAddress ReplicationState::primary() const {
  absl::MutexLock lock(&mutex_);
  return primary_;
}

void ReplicationState::SetPrimary(PrimaryAddress primary) {
  absl::MutexLock lock(&mutex_);
  follows_.store(primary.named(), std::memory_order_release);
  primary_ = std::move(primary);
  link_ = {};
  link_.down_since = std::chrono::steady_clock::now();
}

LinkReport ReplicationState::link() const {
  absl::MutexLock lock(&mutex_);
  return link_;
}

}  // namespace varve
