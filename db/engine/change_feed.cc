#include "db/engine/change_feed.h"

#include <algorithm>
#include <optional>

#include "db/changes/change_reader.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve {
namespace {

absl::Status NoSuchFeed(std::string_view name) {
  return absl::NotFoundError(fmt::format("there is no feed {}", name));
}

}  // namespace

SequenceNumber DeliverableVersion(const SuperVersions& versions, const LogView& log) {
  // In this order: a write that asked for a sync counts before it is written.
  const SequenceNumber written = log->written_sequence();
  const SequenceNumber to_be_synced = log->last_always_sequence();
  const SequenceNumber durable = log.durable_sequence();
  const bool all_synced = to_be_synced <= durable && !log.failed();
  return std::min(all_synced ? std::max(written, durable) : durable, versions.visible());
}

absl::Status ChangeFeed::CheckOn() const {
  if (recorder().on()) return absl::OkStatus();
  if (!version_set_.times().started()) return NoPlaceForHistory();
  return absl::FailedPreconditionError(
      "this store retains no changes: change-retention-bytes and change-retention-time are 0, and "
      "there is no feed");
}

absl::StatusOr<ChangePositions> ChangeFeed::GetChangePositions() const {
  VARVE_RETURN_IF_ERROR(CheckOn());
  return ChangePositions{.history_id = version_set_.ids().history,
                         .first = recorder().first(),
                         .last = DeliverableVersion(versions_, log_)};
}

absl::StatusOr<std::unique_ptr<ChangeIterator>> ChangeFeed::NewChangeIterator(
    SequenceNumber since, const ChangeFilter& filter) const {
  VARVE_RETURN_IF_ERROR(CheckOn());
  if (const SequenceNumber newest = versions_.visible(); since > newest)
    return VersionIsAhead(since, newest);
  if (const SequenceNumber first = recorder().first(); since < first) return Trimmed(first);
  return std::make_unique<ChangeReader>(
      &recorder(),
      [versions = &versions_, log = &log_] { return DeliverableVersion(*versions, *log); }, since,
      filter);
}

absl::Status ChangeFeed::CreateFeed(const FeedPlace& place) {
  if (place.name.empty() || place.name.size() > kMaxFeedNameSize) {
    return absl::InvalidArgumentError(
        fmt::format("the name of a feed has 1 to {} bytes", kMaxFeedNameSize));
  }
  if (!version_set_.times().started()) return NoPlaceForHistory();
  absl::MutexLock lock(&recorder().feeds_mutex());
  const std::shared_ptr<const FeedTable::Feeds> feeds = recorder().feeds().All();
  if (recorder().feeds().Find(place.name))
    return absl::AlreadyExistsError(fmt::format("there is a feed {} already", place.name));
  if (feeds->size() >= kMostFeeds)
    return absl::ResourceExhaustedError(fmt::format("there are {} feeds already", kMostFeeds));
  const bool begins = !recorder().on();
  absl::Status created = begins ? version_set_.SetRetaining(true) : absl::OkStatus();
  if (created.ok()) created = CommitFeed(place);
  // What was to be retained for this feed alone is not retained. Should the install of that fail,
  // the next one tells the manifest.
  if (!created.ok() && begins && recorder().feeds().All()->empty())
    (void)version_set_.SetRetaining(false);
  return created;
}

absl::Status ChangeFeed::CommitFeed(FeedPlace feed) {
  const SequenceNumber newest = versions_.visible();
  if (feed.position == kMaxSequence) feed.position = newest;
  if (feed.position > newest) return VersionIsAhead(feed.position, newest);
  if (const SequenceNumber first = recorder().first(); feed.position < first) return Trimmed(first);
  feed.created_ms = clock_.NowMillis();
  WriteBatch batch;
  batch.ChangeFeed(feed.name, EncodeFeedCreation(feed));
  return commit_(&batch);
}

absl::Status ChangeFeed::AckFeed(std::string_view name, SequenceNumber version) {
  absl::MutexLock lock(&recorder().feeds_mutex());
  const std::optional<FeedPlace> feed = recorder().feeds().Find(name);
  if (!feed) return NoSuchFeed(name);
  if (feed->lost) {
    return absl::FailedPreconditionError(
        fmt::format("the feed {} is lost, since changes behind its position were given up: drop it "
                    "and create it anew",
                    name));
  }
  if (const SequenceNumber newest = versions_.visible(); version > newest)
    return VersionIsAhead(version, newest);
  if (version <= feed->position) return absl::OkStatus();
  WriteBatch batch;
  batch.ChangeFeed(name, EncodeFeedMove(version, clock_.NowMillis()));
  return commit_(&batch);
}

absl::Status ChangeFeed::DropFeed(std::string_view name) {
  absl::MutexLock lock(&recorder().feeds_mutex());
  if (!recorder().feeds().Find(name)) return NoSuchFeed(name);
  WriteBatch batch;
  batch.ChangeFeed(name, EncodeFeedDrop());
  VARVE_RETURN_IF_ERROR(commit_(&batch));
  if (recorder().space().limits().on() || !recorder().feeds().All()->empty())
    return absl::OkStatus();
  return version_set_.SetRetaining(false);
}

std::vector<FeedPlace> ChangeFeed::Feeds() const {
  std::vector<FeedPlace> feeds = *recorder().feeds().All();
  const SequenceNumber newest = versions_.visible();
  for (FeedPlace& feed : feeds) {
    feed.position = std::min(feed.position, newest);  // a crash may have taken versions back
    feed.retained_bytes = recorder().BytesBehind(feed.position);
    feed.most_bytes = MostBytesOf(feed);
    feed.most_age_ms = MostAgeMillisOf(feed);
  }
  return feeds;
}

}  // namespace varve
