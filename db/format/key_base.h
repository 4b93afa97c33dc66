// The key base is the beginning of keys that a segment holds once: the first bytes, 255 at most, of
// the key of its first record. A later record may hold, instead of its whole key, how many of its
// first bytes are those of the base, and the rest (db/format/record_format.h):
//
//   key = the first n bytes of the base + the rest, 2 <= n <= 255
//
// So the writer has to know nothing of the keys to come. They ascend, so that n never rises from
// one key to the next, and in a large segment it soon is what all keys have in common. No record is
// larger than with its whole key. The first record holds its key whole: where the footer, which has
// the base, is damaged, the record at byte 0 tells it.
//
// Versions of one key need not share the same number of bytes: the first record of a segment and
// those with a cause (type/record.h) hold their keys whole.
//
// A get compares the key that it looks for with both parts and puts nothing together. An iterator
// puts keys together in a buffer of its own, in which the bytes of the base stay from one key to
// the next.
//
// Thread-safety: a joiner belongs to one thread; the functions are stateless.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace varve {

inline constexpr size_t kMaxKeyBase = 255;
inline constexpr size_t kLeastSharedBytes = 2;  // fewer cost more than they save

inline std::string_view KeyBaseOf(std::string_view first_key) {
  return first_key.substr(0, kMaxKeyBase);
}

// Returns how many first bytes both have in common.
inline size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + most, b.begin()).first -
                             a.begin());
}

// Returns how many bytes a record of `key` leaves to the base; 0: it holds its whole key.
inline uint32_t SharedBytes(std::string_view base, std::string_view key) {
  const size_t shared = CommonPrefix(base, key);
  return shared < kLeastSharedBytes ? 0 : static_cast<uint32_t>(shared);
}

// Returns whether `size` bytes are the same, without a call where they are few.
inline bool SameBytes(const char* a, const char* b, size_t size) {
  const auto differ = [&]<typename Word>(Word, size_t at) {
    Word x, y;
    std::memcpy(&x, a + at, sizeof(Word));
    std::memcpy(&y, b + at, sizeof(Word));
    return x ^ y;
  };
  if (size > 32) return std::memcmp(a, b, size) == 0;
  if (size > 16) {
    return (differ(uint64_t{}, 0) | differ(uint64_t{}, 8) | differ(uint64_t{}, size - 16) |
            differ(uint64_t{}, size - 8)) == 0;
  }
  if (size >= 8) return (differ(uint64_t{}, 0) | differ(uint64_t{}, size - 8)) == 0;
  if (size >= 4) return (differ(uint32_t{}, 0) | differ(uint32_t{}, size - 4)) == 0;
  return size == 0 || (a[0] == b[0] && a[size / 2] == b[size / 2] && a[size - 1] == b[size - 1]);
}

// Returns whether `shared` bytes of the base and `rest` are `key`.
inline bool IsJoined(std::string_view base, uint32_t shared, std::string_view rest,
                     std::string_view key) {
  return key.size() == shared + rest.size() && shared <= base.size() &&
         SameBytes(key.data() + shared, rest.data(), rest.size()) &&
         SameBytes(key.data(), base.data(), shared);
}

// A place among keys is compared with many of them, of which none is put together.
// Requires: base and key outlive it.
class PlaceAmongKeys {
 public:
  PlaceAmongKeys(std::string_view base, std::string_view key)
      : key_(key),
        common_(CommonPrefix(base, key)),
        base_is_before_(common_ < std::min(base.size(), key.size()) && base.compare(key) < 0) {}

  // Returns how the key of `shared` bytes of the base and of `rest` compares with the place:
  // negative, zero or positive.
  int Compare(uint32_t shared, std::string_view rest) const {
    if (shared <= common_) [[likely]]
      return rest.compare(key_.substr(shared));
    return base_is_before_ ? -1 : 1;  // a key that ends in the base is before it
  }

 private:
  const std::string_view key_;
  const size_t common_;        // bytes of the base and of the key
  const bool base_is_before_;  // by the first byte in which they differ
};

// A key joiner makes whole keys of what records hold.
class KeyJoiner {
 public:
  void SetBase(std::string_view base) {
    base_.assign(base);
    intact_ = 0;
  }
  const std::string& base() const { return base_; }

  // Makes `*key`, of which a record holds all but the first `shared` bytes, the whole key, in
  // memory that stays as it is until the next call. Returns false if the base has fewer bytes.
  // Requires: `readable` bytes may be read from the beginning of `*key` on.
  bool Join(uint32_t shared, size_t readable, std::string_view* key) {
    if (JoinQuickly(shared, readable, key)) [[likely]]
      return true;
    if (shared > base_.size()) return false;
    const size_t rest = key->size();
    if (bytes_.size() < shared + rest + kChunk) Grow(shared + rest);
    char* const bytes = bytes_.data();
    if (shared > intact_) std::memcpy(bytes, base_.data(), shared);
    intact_ = shared;
    std::memcpy(bytes + shared, key->data(), rest);
    *key = {bytes, shared + rest};
    return true;
  }

  // Does what Join() does, without a call. Returns false, and does nothing, where the buffer is too
  // small or does not hold that many bytes of the base, where the rest is longer than kChunk, or
  // where fewer than kChunk bytes may be read.
  bool JoinQuickly(uint32_t shared, size_t readable, std::string_view* key) {
    const size_t rest = key->size();
    if (shared > intact_ || rest > kChunk || readable < kChunk ||
        bytes_.size() < shared + rest + kChunk) [[unlikely]]
      return false;
    char* const bytes = bytes_.data();
    intact_ = shared;
    std::memcpy(bytes + shared, key->data(), kChunk);  // two instructions
    *key = {bytes, shared + rest};
    return true;
  }

 private:
  static constexpr size_t kChunk = 16;

  void Grow(size_t size) {
    bytes_.resize(std::max(2 * size, kMaxKeyBase) + kChunk);
    intact_ = 0;
  }

  std::string base_;
  std::string bytes_;  // begins with the last key
  size_t intact_ = 0;  // of bytes_: those that are the base's for sure
};

}  // namespace varve
