#include "server/access/acl_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr size_t kLooksBack = 10;  // entries with which a new one may be alike

bool Alike(const AclLog::Entry& one, const AclLog::Entry& other) {
  return one.reason == other.reason && one.context == other.context && one.object == other.object &&
         one.username == other.username && other.created_ms - one.updated_ms <= AclLog::kGroupMs;
}

}  // namespace

void AclLog::Add(Entry entry) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(entry.count == 1);
  entry.updated_ms = entry.created_ms;
  const auto end =
      std::next(entries_.begin(), static_cast<ptrdiff_t>(std::min(entries_.size(), kLooksBack)));
  const auto alike =
      std::find_if(entries_.begin(), end, [&](const Entry& known) { return Alike(known, entry); });
  if (alike != end) {
    ++alike->count;
    alike->updated_ms = entry.updated_ms;
    alike->client = std::move(entry.client);
    entries_.splice(entries_.begin(), entries_, alike);
  } else {
    entry.id = next_id_++;
    entries_.push_front(std::move(entry));
  }
  if (entries_.size() > max_entries_) entries_.pop_back();
  VARVE_ASSERT(entries_.size() <= max_entries_);
}

std::vector<AclLog::Entry> AclLog::Newest(size_t count) const {
  absl::MutexLock lock(&mutex_);
  const size_t shown = std::min(count, entries_.size());
  return {entries_.begin(), std::next(entries_.begin(), static_cast<ptrdiff_t>(shown))};
}

void AclLog::Clear() {
  absl::MutexLock lock(&mutex_);
  entries_.clear();
  VARVE_ASSERT(entries_.empty());
}

void AclLog::set_max_entries(size_t entries) {
  absl::MutexLock lock(&mutex_);
  max_entries_ = entries;
  while (entries_.size() > max_entries_) entries_.pop_back();
  VARVE_ASSERT(entries_.size() <= max_entries_);
}

}  // namespace varve
