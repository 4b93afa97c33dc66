#include "server/replication/replica_feeds.h"

#include "util/base/status.h"

namespace varve {

absl::StatusOr<ReplicaFeeds::Piece> ReplicaFeeds::Next(const std::string& id, SequenceNumber since,
                                                       size_t most_bytes) {
  if (store_ == nullptr) return absl::UnimplementedError("this store can't be replicated");
  std::shared_ptr<Entry> entry;
  {
    absl::MutexLock lock(&mutex_);
    Place& place = places_[id];
    if (place.entry == nullptr) place.entry = std::make_shared<Entry>();
    place.used = std::chrono::steady_clock::now();
    entry = place.entry;
  }
  absl::MutexLock lock(&entry->mutex);
  if (entry->feed == nullptr || entry->feed->position() != since) {
    entry->feed = nullptr;
    VARVE_ASSIGN_OR_RETURN(entry->feed, store_->NewReplicaFeed(since));
  }
  Piece piece;
  VARVE_ASSIGN_OR_RETURN(piece.blocks, entry->feed->Next(most_bytes));
  piece.position = entry->feed->position();
  return piece;
}

void ReplicaFeeds::CloseIdle(std::chrono::steady_clock::time_point before) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(places_, [&](const auto& entry) { return entry.second.used < before; });
}

}  // namespace varve
