#include "server/replication/follower_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "util/base/assert.h"

namespace varve {

void FollowerTable::Join(Follower follower) {
  {
    absl::MutexLock lock(&mutex_);
    std::string id = follower.id;
    if (copying_ == id) copying_.clear();
    followers_.insert_or_assign(std::move(id), std::move(follower));
  }
  Tell();
}

bool FollowerTable::Note(const std::string& id, SequenceNumber applied, SequenceNumber durable,
                         Time now) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = followers_.find(id);
    if (found == followers_.end()) return false;
    Follower& follower = found->second;
    follower.applied = applied;
    follower.durable = durable;
    follower.told = now;
  }
  Tell();
  return true;
}

void FollowerTable::NoteSent(const std::string& id, SequenceNumber sent) {
  absl::MutexLock lock(&mutex_);
  const auto found = followers_.find(id);
  if (found != followers_.end()) found->second.sent = sent;
}

bool FollowerTable::Begin(const std::string& id, bool* is_new) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = followers_.find(id);
    if (found == followers_.end()) return false;
    found->second.told = std::chrono::steady_clock::now();
    *is_new = !std::exchange(found->second.online, true);
    if (!*is_new) return true;
  }
  Tell();
  return true;
}

bool FollowerTable::BeginCopy(const std::string& id, Time since) {
  absl::MutexLock lock(&mutex_);
  if (followers_.find(id) == followers_.end()) return false;
  if (!copying_.empty() && copying_ != id) {
    const auto other = followers_.find(copying_);
    if (other != followers_.end() && other->second.told >= since) return false;
  }
  copying_ = id;
  return true;
}

void FollowerTable::EndCopy(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  if (copying_ == id) copying_.clear();
}

bool FollowerTable::Copies(const std::string& id, Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = followers_.find(id);
  if (found == followers_.end() || copying_ != id) return false;
  found->second.told = now;
  return true;
}

void FollowerTable::LeaveSilent(Time before) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::erase_if(followers_, [&](const auto& entry) { return entry.second.told < before; }) ==
        0)
      return;
  }
  Tell();
}

std::vector<Follower> FollowerTable::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Follower> list;
  for (const auto& [id, follower] : followers_) list.push_back(follower);
  return list;
}

size_t FollowerTable::size() const {
  absl::MutexLock lock(&mutex_);
  return followers_.size();
}

size_t FollowerTable::CountApplied(SequenceNumber version) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(followers_.begin(), followers_.end(), [version](const auto& entry) {
        return entry.second.online && entry.second.applied >= version;
      }));
}

size_t FollowerTable::CountDurable(SequenceNumber version) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(followers_.begin(), followers_.end(), [version](const auto& entry) {
        return entry.second.online && entry.second.durable >= version;
      }));
}

size_t FollowerTable::CountGood(Time since) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(std::count_if(
      followers_.begin(), followers_.end(),
      [since](const auto& entry) { return entry.second.online && entry.second.told >= since; }));
}

SequenceNumber FollowerTable::DurableOn(size_t count) const {
  VARVE_ASSERT(count > 0);
  absl::MutexLock lock(&mutex_);
  std::vector<SequenceNumber> versions;
  for (const auto& [id, follower] : followers_)
    if (follower.online) versions.push_back(follower.durable);
  if (versions.size() < count) return kNoSequence;
  const auto place = versions.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(versions.begin(), place, versions.end(), std::greater<>());
  return *place;
}

}  // namespace varve
