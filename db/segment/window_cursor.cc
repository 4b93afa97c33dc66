#include "db/segment/window_cursor.h"

#include "util/base/assert.h"

namespace varve {

bool WindowCursor::Decode() {
  size_ = DecodeRecord(Rest(), seed_, mode_, &record_, &shared_);
  if (size_ == 0) [[unlikely]]
    return false;
  // The value lies behind the key.
  if (shared_ != 0 && !keys_.Join(shared_, record_.key.size() + record_.value.size(), &record_.key))
      [[unlikely]]
    return false;
  record_.sequence = std::max(record_.sequence, ingested_at_);
  record_.decoder = decoder_;
  return true;
}

bool WindowCursor::NextKey(int most_steps) {
  const uint32_t shared = shared_;
  const std::string_view own = OwnKeyBytes();
  for (int steps = 0; steps < most_steps && next_offset() < end(); ++steps) {
    const uint64_t last = offset_;
    if (!Next()) [[unlikely]] {
      const bool is_good = MoveTo(last);
      VARVE_ASSERT(is_good);
      return false;
    }
    if (!HasKey(shared, own)) [[likely]]
      return true;
  }
  return false;
}

bool WindowCursor::HasKey(uint32_t shared, std::string_view own) const {
  return IsJoined(keys_.base(), shared, own, record_.key);
}

void WindowCursor::PassBefore(std::string_view tree_key, SequenceNumber sequence) {
  const PlaceAmongKeys place(keys_.base(), tree_key);
  for (uint64_t next = next_offset(); next < end(); next = next_offset()) {
    const std::string_view rest = window_.substr(next - begin_);
    PrefetchLine(rest.data() + std::max(kPrefetchAhead, 2 * size_));
    RecordView record;
    uint32_t shared = 0;
    const size_t size = DecodeRecord(rest, seed_, mode_, &record, &shared);
    if (size == 0) return;
    const int order = place.Compare(shared, record.key);
    if (order > 0 || (order == 0 && std::max(record.sequence, ingested_at_) <= sequence)) return;
    offset_ = next;
    size_ = size;
  }
}

}  // namespace varve
