// The feed table holds the places of readers of the change feed by name. The log has each change of
// it as an operation (RecordKind::kChangeFeed), and the manifest what the table holds.
//
//   key:   0xfffffffe (4 bytes), name
//   value: 1  verb, then (numbers as varint64)
//          create (1)  position, namespace + 1 (0: all of them), string prefix, most bytes, most
//                      age in ms, instant in ms
//          move (2)    position, instant in ms
//          drop (3)    nothing
//
// A change says what is true after it, so a replay of changes that the table has already does no
// harm.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "type/record.h"
#include "varve/changes.h"
#include "varve/types.h"

namespace varve {

inline constexpr size_t kMostFeeds = 1024;
inline constexpr size_t kMaxFeedNameSize = 255;
inline constexpr uint64_t kUsualFeedBytes = uint64_t{1} << 30;
inline constexpr uint64_t kUsualFeedAgeMillis = 24 * uint64_t{3'600'000};

// These return the bounds that hold for a feed.
inline uint64_t MostBytesOf(const FeedPlace& feed) {
  return feed.most_bytes != 0 ? feed.most_bytes : kUsualFeedBytes;
}
inline uint64_t MostAgeMillisOf(const FeedPlace& feed) {
  return feed.most_age_ms != 0 ? feed.most_age_ms : kUsualFeedAgeMillis;
}

std::string EncodeFeedCreation(const FeedPlace& feed);
std::string EncodeFeedMove(SequenceNumber position, uint64_t instant_ms);
std::string EncodeFeedDrop();

class FeedTable {
 public:
  using Feeds = std::vector<FeedPlace>;  // ascending by name

  std::shared_ptr<const Feeds> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<FeedPlace> Find(std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Load(Feeds feeds) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the table after an operation of the log; `before` is the table after those before it in
  // the same batch, or null. What makes no sense changes nothing. Throws std::bad_alloc.
  std::shared_ptr<const Feeds> After(const std::shared_ptr<const Feeds>& before,
                                     const RecordView& operation) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Publish(std::shared_ptr<const Feeds> feeds) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks the feeds as lost. A change of a feed that is committed meanwhile may take the marks
  // away; then the next Persist() of the recorder sets them again.
  void MarkLost(const std::vector<std::string>& names) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Feeds> feeds_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Feeds>();
};

}  // namespace varve
