#include "server/eviction/walk_cursor.h"

#include <utility>

#include "spdlog/spdlog.h"

namespace varve {
namespace {

constexpr size_t kMostBytes = 256;  // by which places are told apart
// A search ends after so many trials that meet damage.
constexpr int kMostDamaged = 256;
// A walk ends after so many reads that the device fails, as each may take it seconds.
constexpr int kMostFailed = 32;

}  // namespace

WalkCursor::WalkCursor(Store* store, NamespaceId space, SequenceNumber newer_than)
    : store_(*store),
      space_(space),
      newer_than_(newer_than),
      snapshot_(store->GetSnapshot()),
      iterator_(Open("", "")) {
  PassWhatCannotBeRead();
}

void WalkCursor::Next() {
  last_.assign(iterator_->key());
  iterator_->Next();
  PassWhatCannotBeRead();
}

std::unique_ptr<Iterator> WalkCursor::Open(std::string_view first, std::string_view end) const {
  ReadOptions options;
  options.snapshot = snapshot_.get();
  options.space = space_;
  options.wait_until_durable = false;
  options.fill_cache = false;
  options.without_value = true;
  options.newer_than = newer_than_;
  std::unique_ptr<Iterator> iterator = store_.NewIterator(options, first, end, nullptr);
  iterator->SeekToFirst();
  return iterator;
}

void WalkCursor::PassWhatCannotBeRead() {
  if (iterator_->Valid()) [[likely]]
    return;
  const absl::Status failed = iterator_->status();
  if (!absl::IsDataLoss(failed) && !absl::IsInternal(failed)) return;
  if (absl::IsInternal(failed)) ++failed_reads_;
  if (!std::exchange(has_passed_keys_, true)) {
    spdlog::warn(
        "Keys of namespace {} that cannot be read, and keys close to them, are not evicted until a "
        "later walk reads them: {}",
        space_, failed.ToString());
  }
  const std::string behind = FindPlaceBehindLast();
  iterator_ = behind.empty() ? nullptr : Open(behind, "");
}

// Each round adds a byte to `place`: the highest one such that an iterator fails that begins there.
// As long as `place` is the beginning of the last key, one trial mostly shows that this is the next
// byte of the last key itself. A trial ends where an earlier one has begun, so that all of them
// together look at few more keys than lie there.
std::string WalkCursor::FindPlaceBehindLast() {
  std::string behind, place;
  bool begins_last = true;
  int damaged = 0;
  while (place.size() < kMostBytes) {
    begins_last = begins_last && place.size() < last_.size();
    const int passed = begins_last ? static_cast<uint8_t>(last_[place.size()]) : -1;
    int fails = passed, opens = 256;
    for (int tried = begins_last ? passed + 1 : (fails + opens) / 2; opens - fails > 1;
         tried = (fails + opens) / 2) {
      if (damaged >= kMostDamaged || failed_reads_ >= kMostFailed) return behind;
      const std::string first = place + static_cast<char>(tried);
      const absl::Status trial = Open(first, behind)->status();
      if (trial.ok()) {
        opens = tried;
        behind = first;
      } else {
        fails = tried;
        ++(absl::IsDataLoss(trial) ? damaged : failed_reads_);
      }
    }
    if (fails < 0) break;  // the place with a zero behind it is the next one
    begins_last = begins_last && fails == passed;
    place.push_back(static_cast<char>(fails));
  }
  return behind;
}

}  // namespace varve
