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

void FollowerTable::NoteCopying(const std::string& id, bool copies) {
  absl::MutexLock lock(&mutex_);
  const auto found = followers_.find(id);
  if (found != followers_.end()) found->second.copies = copies;
}

void FollowerTable::Leave(const std::string& id) {
  {
    absl::MutexLock lock(&mutex_);
    if (followers_.erase(id) == 0) return;
  }
  Tell();
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
        return !entry.second.copies && entry.second.applied >= version;
      }));
}

size_t FollowerTable::CountDurable(SequenceNumber version) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(followers_.begin(), followers_.end(), [version](const auto& entry) {
        return !entry.second.copies && entry.second.durable >= version;
      }));
}

size_t FollowerTable::CountGood(Time since) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(std::count_if(
      followers_.begin(), followers_.end(),
      [since](const auto& entry) { return !entry.second.copies && entry.second.told >= since; }));
}

SequenceNumber FollowerTable::DurableOn(size_t count) const {
  VARVE_ASSERT(count > 0);
  absl::MutexLock lock(&mutex_);
  std::vector<SequenceNumber> versions;
  for (const auto& [id, follower] : followers_)
    if (!follower.copies) versions.push_back(follower.durable);
  if (versions.size() < count) return kNoSequence;
  const auto place = versions.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(versions.begin(), place, versions.end(), std::greater<>());
  return *place;
}

}  // namespace varve
