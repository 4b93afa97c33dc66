#include "server/clients/login_guard.h"

#include <arpa/inet.h>

#include <algorithm>

#include "util/base/assert.h"

namespace varve {

std::string NetworkOf(std::string_view address) {
  constexpr size_t kNetworkBytes = 8;
  address = address.substr(0, address.rfind(':'));
  if (!address.starts_with('[') || !address.ends_with(']')) return std::string(address);
  const std::string host(address.substr(1, address.size() - 2));
  in6_addr bytes{};
  if (inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &bytes) != 1) return host;
  if (IN6_IS_ADDR_V4MAPPED(&bytes)) return host;
  return {reinterpret_cast<const char*>(bytes.s6_addr), kNetworkBytes};
}

uint32_t LoginGuard::Failures::Remembered(Time now) const {
  const auto forgotten = std::chrono::duration_cast<std::chrono::seconds>(now - at).count();
  return forgotten >= count ? 0 : count - static_cast<uint32_t>(std::max<int64_t>(forgotten, 0));
}

LoginGuard::Report LoginGuard::Failed(std::string_view address, Time now) {
  absl::MutexLock lock(&mutex_);
  const auto [at, is_new] = failures_.try_emplace(NetworkOf(address), Failures{0, now});
  Failures& failures = at->second;
  const uint32_t before = failures.Remembered(now);
  VARVE_ASSERT(before <= kMostRemembered);
  failures = {std::min(before + 1, kMostRemembered), now};
  if (failures_.size() > kMostAddresses) MakeRoom(now);
  return before == 0 ? Report::kFirst : before + 1 == kFree ? Report::kMany : Report::kNothing;
}

std::chrono::milliseconds LoginGuard::Delay(std::string_view address, Time now) const {
  absl::MutexLock lock(&mutex_);
  if (failures_.empty()) return std::chrono::milliseconds(0);
  const auto found = failures_.find(NetworkOf(address));
  const bool waits = found != failures_.end() && found->second.Remembered(now) >= kFree;
  return waits ? kDelay : std::chrono::milliseconds(0);
}

void LoginGuard::MakeRoom(Time now) {
  mutex_.AssertHeld();
  absl::erase_if(failures_, [&](const auto& entry) { return entry.second.Remembered(now) == 0; });
  if (failures_.size() > kMostAddresses) failures_.clear();
  VARVE_ASSERT(failures_.size() <= kMostAddresses);
}

}  // namespace varve
