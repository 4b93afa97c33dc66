#include "db/segment/value_lookahead.h"

#include "db/format/record_format.h"
#include "db/segment/segment_caches.h"

namespace varve {

void ValueLookahead::Advance(std::string_view window, uint64_t window_begin, uint64_t next) {
  if (cache_ == nullptr) return;
  if (decoded_until_ < next || decoded_until_ > window_begin + window.size()) {
    decoded_until_ = next;
    DecodeOne(window, window_begin);
  } else if (last_.file_number != 0) {
    cache_->PrefetchEntry(last_.file_number, RecordKey(last_.offset), 0);
  }
  DecodeOne(window, window_begin);
}

void ValueLookahead::DecodeOne(std::string_view window, uint64_t window_begin) {
  last_ = {};
  if (decoded_until_ >= window_begin + window.size()) return;
  RecordView record;
  uint32_t shared = 0;
  const size_t size = DecodeRecord(window.substr(decoded_until_ - window_begin), seed_,
                                   ChecksumMode::kTrusted, &record, &shared);
  decoded_until_ += size;
  if (size != 0 && IsSeparated(record) && DecodeValueHandle(record.value, &last_))
    cache_->PrefetchSlot(last_.file_number, RecordKey(last_.offset));
}

}  // namespace varve
