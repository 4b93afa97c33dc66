#include "server/following/skipped_keys.h"

#include <algorithm>

#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace varve {
namespace {

// Returns the beginning of a name as one line of a log or of INFO can hold it.
std::string Shown(std::string_view name) {
  std::string shown(name.substr(0, SkippedKeys::kLongestShown));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7F'; }, '?');
  return shown;
}

}  // namespace

void SkippedKeys::Add(std::string_view type, std::string_view key) {
  const std::string shown_type = Shown(type);
  absl::MutexLock lock(&mutex_);
  ++counts_[shown_type];
  size_t& logged = logged_[shown_type];
  if (logged >= kNamesPerType && names_.size() >= kNames) return;
  std::string name = key.empty() ? shown_type : fmt::format("{} {}", shown_type, Shown(key));
  if (known_.contains(name)) return;
  if (logged < kNamesPerType && names_.size() < kMostNames) {
    ++logged;
    spdlog::warn("Not taken from Redis: {}{}", name,
                 logged == kNamesPerType ? " (further ones of this type are only counted)" : "");
  } else if (names_.size() >= kNames) {
    return;
  }
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
  return counts_;
}

std::vector<std::string> SkippedKeys::names() const {
  absl::MutexLock lock(&mutex_);
  return names_;
}

}  // namespace varve
