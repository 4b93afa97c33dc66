// The segment dictionary is the part of a segment behind the fences that holds the dictionary of
// its compressed values (db/compression/value_dictionary.h):
//
//   0   4  checksum of the rest, seeded as SegmentPartSeed(number, kDictionary) says
//   4   4  size of the content
//   8   8  magic "VARVEDIC", by which a repair finds it where the footer is lost
//  16   .  content
//
// ResidentDictionary is a segment's hold on the dictionary: read once, when the offset table is
// loaded or at the first value that needs it, and kept as long as the segment is open. Its memory
// counts against the budget of offset tables.
//
// Thread-safety: functions without state; a ResidentDictionary may be used by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/compression/value_dictionary.h"
#include "db/segment/segment_footer.h"
#include "util/os/file_system.h"

namespace varve {

class OffsetTableCache;

inline constexpr std::string_view kDictionaryMagic = "VARVEDIC";
inline constexpr size_t kDictionaryHeaderSize = 16;

// Appends the part to `*destination`.
void AppendDictionary(const ValueDictionary& dictionary, uint64_t number, std::string* destination);
// Returns the dictionary of the part at bytes[0] of segment `number`; null if that is damaged or
// cut short.
std::shared_ptr<const ValueDictionary> DecodeDictionary(std::string_view bytes, uint64_t number);
// Reads and checks the dictionary with one read. Returns null if the segment has none.
[[nodiscard]] absl::StatusOr<std::shared_ptr<const ValueDictionary>> ReadDictionary(
    const File& file, const SegmentFooter& footer);

class ResidentDictionary {
 public:
  explicit ResidentDictionary(OffsetTableCache* budget) : budget_(budget) {}
  ~ResidentDictionary();
  ResidentDictionary(const ResidentDictionary&) = delete;
  ResidentDictionary& operator=(const ResidentDictionary&) = delete;

  // Returns the dictionary, reading it at first use; null if the segment has none. The pointer
  // lives as long as this object.
  [[nodiscard]] absl::StatusOr<const ValueDictionary*> Get(const File& file,
                                                           const SegmentFooter& footer);
  // Returns the same as a reference.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const ValueDictionary>> Share(
      const File& file, const SegmentFooter& footer);

 private:
  OffsetTableCache* const budget_;
  std::atomic<const ValueDictionary*> ready_{nullptr};
  absl::Mutex mutex_;  // held while the dictionary is read
  std::shared_ptr<const ValueDictionary> owner_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
