#include "db/changes/feed_table.h"

#include <algorithm>
#include <utility>

#include "type/tree_key.h"
#include "util/base/coding.h"

namespace varve {
namespace {

enum class Verb : uint8_t { kCreate = 1, kMove = 2, kDrop = 3 };

constexpr auto kNameBelow = [](const FeedPlace& feed, std::string_view name) {
  return feed.name < name;
};

bool DecodeCreation(ByteReader* reader, FeedPlace* feed) {
  uint64_t space = 0;
  std::string_view prefix;
  if (!reader->ReadVarint64(&feed->position) || !reader->ReadVarint64(&space) ||
      !reader->ReadLengthPrefixed(&prefix) || !reader->ReadVarint64(&feed->most_bytes) ||
      !reader->ReadVarint64(&feed->most_age_ms) || !reader->ReadVarint64(&feed->created_ms) ||
      !reader->empty())
    return false;
  feed->space = space == 0 ? std::nullopt : std::optional(static_cast<NamespaceId>(space - 1));
  feed->prefix = prefix;
  feed->acknowledged_ms = feed->created_ms;
  return true;
}

}  // namespace

std::string EncodeFeedCreation(const FeedPlace& feed) {
  std::string bytes(1, static_cast<char>(Verb::kCreate));
  PutVarint64(&bytes, feed.position);
  PutVarint64(&bytes, feed.space ? uint64_t{*feed.space} + 1 : 0);
  PutLengthPrefixed(&bytes, feed.prefix);
  PutVarint64(&bytes, feed.most_bytes);
  PutVarint64(&bytes, feed.most_age_ms);
  PutVarint64(&bytes, feed.created_ms);
  return bytes;
}

std::string EncodeFeedMove(SequenceNumber position, uint64_t instant_ms) {
  std::string bytes(1, static_cast<char>(Verb::kMove));
  PutVarint64(&bytes, position);
  PutVarint64(&bytes, instant_ms);
  return bytes;
}

std::string EncodeFeedDrop() { return {static_cast<char>(Verb::kDrop)}; }

std::shared_ptr<const FeedTable::Feeds> FeedTable::All() const {
  absl::MutexLock lock(&mutex_);
  return feeds_;
}

std::optional<FeedPlace> FeedTable::Find(std::string_view name) const {
  const std::shared_ptr<const Feeds> feeds = All();
  const auto found = std::lower_bound(feeds->begin(), feeds->end(), name, kNameBelow);
  if (found == feeds->end() || found->name != name) return std::nullopt;
  return *found;
}

void FeedTable::Load(Feeds feeds) { Publish(std::make_shared<const Feeds>(std::move(feeds))); }

std::shared_ptr<const FeedTable::Feeds> FeedTable::After(const std::shared_ptr<const Feeds>& before,
                                                         const RecordView& operation) const {
  const auto after = std::make_shared<Feeds>(before != nullptr ? *before : *All());
  const std::string_view name = UserKeyOf(operation.key);
  const auto place = std::lower_bound(after->begin(), after->end(), name, kNameBelow);
  const bool is_there = place != after->end() && place->name == name;
  ByteReader reader(operation.value);
  uint8_t verb = 0;
  if (!reader.ReadByte(&verb)) return after;
  switch (static_cast<Verb>(verb)) {
    case Verb::kCreate: {
      FeedPlace feed{.name = std::string(name)};
      if (!DecodeCreation(&reader, &feed)) break;
      if (is_there) {
        *place = std::move(feed);
      } else {
        after->insert(place, std::move(feed));
      }
      break;
    }
    case Verb::kMove: {
      uint64_t position = 0, instant = 0;
      if (!is_there || !reader.ReadVarint64(&position) || !reader.ReadVarint64(&instant)) break;
      place->position = std::max(place->position, position);
      place->acknowledged_ms = std::max(place->acknowledged_ms, instant);
      break;
    }
    case Verb::kDrop:
      if (is_there) after->erase(place);
      break;
  }
  return after;
}

void FeedTable::Publish(std::shared_ptr<const Feeds> feeds) noexcept {
  absl::MutexLock lock(&mutex_);
  feeds_.swap(feeds);
}

void FeedTable::MarkLost(const std::vector<std::string>& names) {
  absl::MutexLock lock(&mutex_);
  const auto marked = std::make_shared<Feeds>(*feeds_);
  for (FeedPlace& feed : *marked) {
    if (std::find(names.begin(), names.end(), feed.name) != names.end()) feed.lost = true;
  }
  feeds_ = marked;
}

}  // namespace varve
