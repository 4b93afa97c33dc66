#include "server/following/skipped_keys.h"

#include <functional>

#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace varve {

void SkippedKeys::Add(std::string_view type, std::string_view key) {
  absl::MutexLock lock(&mutex_);
  const auto counted = counts_.try_emplace(std::string(type), 0).first;
  ++counted->second;
  size_t& logged = logged_.try_emplace(std::string(type), 0).first->second;
  if (names_.size() >= kNames && logged >= kLoggedPerType) return;
  const std::string_view shown = key.substr(0, kLongestShown);
  std::string name = key.empty() ? std::string(type) : fmt::format("{} {}", type, shown);
  if (known_.contains(name)) return;
  if (logged < kLoggedPerType) {
    ++logged;
    spdlog::warn("Not taken from Redis: {}{}", name,
                 logged == kLoggedPerType ? " (further ones of this type are only counted)" : "");
  }
  if (names_.size() >= kNames) return;
  names_.push_back(name);
  known_.insert(std::move(name));
}

void SkippedKeys::Clear() {
  absl::MutexLock lock(&mutex_);
  counts_.clear();
  logged_.clear();
  names_.clear();
  known_.clear();
}

std::map<std::string, uint64_t> SkippedKeys::counts() const {
  absl::MutexLock lock(&mutex_);
  return {counts_.begin(), counts_.end()};
}

std::vector<std::string> SkippedKeys::names() const {
  absl::MutexLock lock(&mutex_);
  return names_;
}

}  // namespace varve
