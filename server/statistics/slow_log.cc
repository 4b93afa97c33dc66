#include "server/statistics/slow_log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

std::vector<std::string> Shortened(Arguments arguments) {
  std::vector<std::string> texts;
  const bool too_many = arguments.size() > SlowLog::kMaxArguments;
  const size_t shown = too_many ? SlowLog::kMaxArguments - 1 : arguments.size();
  for (const std::string_view argument : arguments.first(shown)) {
    std::string text(argument.substr(0, SlowLog::kMaxArgumentBytes));
    if (argument.size() > text.size())
      text += fmt::format("... ({} more bytes)", argument.size() - text.size());
    texts.push_back(std::move(text));
  }
  if (too_many) texts.push_back(fmt::format("... ({} more arguments)", arguments.size() - shown));
  return texts;
}

}  // namespace

void SlowLog::Add(uint64_t nanos, Arguments arguments, const std::string& client_address,
                  const std::string& client_name) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Entry entry{.id = 0,
              .unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
              .micros = static_cast<int64_t>(nanos / 1000),
              .arguments = Shortened(arguments),
              .client_address = client_address,
              .client_name = client_name};
  absl::MutexLock lock(&mutex_);
  entry.id = next_id_++;
  VARVE_ASSERT(entries_.empty() || entries_.front().id < entry.id);
  entries_.push_front(std::move(entry));
  if (entries_.size() > max_entries_) entries_.resize(max_entries_);
  VARVE_ASSERT(entries_.size() <= max_entries_);
}

std::vector<SlowLog::Entry> SlowLog::Newest(size_t count) const {
  absl::MutexLock lock(&mutex_);
  return {entries_.begin(),
          entries_.begin() + static_cast<std::ptrdiff_t>(std::min(count, entries_.size()))};
}

size_t SlowLog::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

void SlowLog::Clear() {
  absl::MutexLock lock(&mutex_);
  entries_.clear();
}

void SlowLog::set_max_entries(size_t entries) {
  absl::MutexLock lock(&mutex_);
  max_entries_ = entries;
  if (entries_.size() > entries) entries_.resize(entries);
  VARVE_ASSERT(entries_.size() <= max_entries_);
  VARVE_ASSERT(entries_.size() <= next_id_);
}

}  // namespace varve
