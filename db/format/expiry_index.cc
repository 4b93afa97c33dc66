#include "db/format/expiry_index.h"

#include <algorithm>
#include <bit>

#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kValueSize = 8;
// The writer rounds an entry by at most 1 / 2^4 of the time that is left.
constexpr int kWidthBelowTimeLeft = 4;

void AppendBigEndian(uint64_t number, std::string* bytes) {
  char encoded[sizeof(number)];
  EncodeBigEndian64(encoded, number);
  bytes->append(encoded, sizeof(encoded));
}

}  // namespace

ExpiryIndexEntry ExpiryIndexEntryFor(std::string_view tree_key, uint64_t expiry_ms,
                                     uint64_t now_ms) {
  const uint64_t left = expiry_ms > now_ms ? expiry_ms - now_ms : 0;
  const int width = std::clamp(static_cast<int>(std::bit_width(left)) - 1 - kWidthBelowTimeLeft, 0,
                               kExpiryWidths - 1);
  const uint64_t mask = (uint64_t{1} << width) - 1;
  const uint64_t due = expiry_ms > ~mask ? ~uint64_t{0} : (expiry_ms + mask) & ~mask;
  return {width, due, tree_key};
}

RecordView ExpiryIndexRecord(const RecordView& record, uint64_t now_ms, std::string* bytes) {
  std::string user_key;
  EncodeExpiryIndexKey(ExpiryIndexEntryFor(record.key, record.expiry_ms, now_ms), &user_key);
  *bytes = FirstTreeKey(kExpiryGeneration) + user_key;
  PutFixed64(bytes, record.expiry_ms);
  return ExpiryIndexRecord(*bytes, record.sequence);
}

RecordView ExpiryIndexRecord(std::string_view bytes, SequenceNumber sequence) {
  const size_t key_size = bytes.size() - kValueSize;
  return {.key = bytes.substr(0, key_size), .value = bytes.substr(key_size), .sequence = sequence};
}

uint64_t ExpiryInIndex(std::string_view value) {
  return value.size() == kValueSize ? DecodeFixed64(value.data()) : kNoExpiry;
}

void EncodeExpiryIndexKey(const ExpiryIndexEntry& entry, std::string* key) {
  key->clear();
  key->push_back(static_cast<char>(entry.width));
  AppendBigEndian(entry.due_ms, key);
  key->append(entry.tree_key);
}

std::string ExpiryIndexBound(int width, uint64_t due_ms) {
  std::string key(1, static_cast<char>(width));
  AppendBigEndian(due_ms, &key);
  return key;
}

std::optional<ExpiryIndexEntry> DecodeExpiryIndexKey(std::string_view key) {
  if (key.size() < kExpiryIndexPrefixSize) return std::nullopt;
  const int width = static_cast<unsigned char>(key[0]);
  if (width >= kExpiryWidths) return std::nullopt;
  return ExpiryIndexEntry{width, DecodeBigEndian64(key.data() + 1), key.substr(9)};
}

}  // namespace varve
