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

PrimaryAddress ParsePrimaryAddress(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return {};
  PrimaryAddress primary{.host = std::string(text.substr(0, space))};
  for (const char c : text.substr(space + 1))
    primary.port = static_cast<uint16_t>(primary.port * 10 + (c - '0'));
  return primary;
}

std::string PrimaryText(const PrimaryAddress& primary) {
  return primary.named() ? primary.host + ' ' + std::to_string(primary.port) : "";
}

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
  link_is_up_.store(false, std::memory_order_release);
  link_was_up_ = false;
  link_.down_since = std::chrono::steady_clock::now();
}

LinkReport ReplicationState::link() const {
  LinkReport report;
  {
    absl::MutexLock lock(&mutex_);
    report = link_;
  }
  if (complete_) complete_(&report);
  return report;
}

}  // namespace varve
