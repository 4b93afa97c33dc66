#include "unit-tests/prove/soak/feed_mirror.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/prove/soak/key_owner.h"
#include "unit-tests/prove/soak/owned_values.h"
#include "unit-tests/prove/soak/state_sum.h"
#include "unit-tests/prove/writer.h"
#include "unit-tests/testing/eventually.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

constexpr size_t kReplyParts = 4, kFields = 6;
constexpr size_t kStates = 4u << 20;
// Replies between two acknowledgements, and for which a connection is kept.
constexpr uint64_t kAcknowledged = 20, kConnected = 1000;

absl::Status Wrong(const std::string& what) { return absl::InternalError("the feed: " + what); }

}  // namespace

FeedMirror::FeedMirror(Options options, Findings* findings)
    : options_(std::move(options)), findings_(*findings) {}

absl::Status FeedMirror::Open(uint16_t port) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(ClientOf(port, "")));
  VARVE_RETURN_IF_ERROR(
      client->Call({"FEED", "CREATE", options_.feed, "FROM", "NOW", "MAXBYTES", "256MiB"})
          .status());
  VARVE_ASSIGN_OR_RETURN(const Reply now, client->Call({"CHANGES", "NOW"}));
  {
    const absl::MutexLock lock(&mutex_);
    history_id_ = now.elements[0].text;
    position_ = now.elements[1].integer;
    states_.push_back({.version = position_});
  }
  return Acknowledge(client.get());
}

void FeedMirror::Run(uint16_t port, const absl::Notification& ended) {
  absl::Status status;
  while (status.ok() && !ended.HasBeenNotified()) {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(ClientOf(port, ""));
    status = client.ok() ? CheckPlace(client->get()) : client.status();
    for (uint64_t replies = 1; status.ok() && replies <= kConnected; ++replies) {
      if (ended.HasBeenNotified()) break;
      status = ReadSome(client->get());
      if (status.ok() && replies % kAcknowledged == 0) status = Acknowledge(client->get());
    }
    if (status.ok()) status = Acknowledge(client->get());
  }
  findings_.AddStatus("the mirror", status);
  const absl::MutexLock lock(&mutex_);
  has_ended_ = true;
}

absl::Status FeedMirror::CheckPlace(Client* client) {
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call({"FEED", "INFO", options_.feed}));
  for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    const std::string& field = reply.elements[i].text;
    const int64_t number = reply.elements[i + 1].integer;
    if (field == "lost" && number != 0) return Wrong("the place is lost");
    if (field == "position" && number != acknowledged_)
      return Wrong(fmt::format("the place is {}, not {}", number, acknowledged_));
  }
  const absl::MutexLock lock(&mutex_);
  ++figures_.connections;
  return absl::OkStatus();
}

absl::Status FeedMirror::Acknowledge(Client* client) {
  const int64_t now = position();
  VARVE_RETURN_IF_ERROR(client->Call({"FEED", "ACK", options_.feed, fmt::to_string(now)}).status());
  acknowledged_ = now;
  return absl::OkStatus();
}

absl::Status FeedMirror::ReadSome(Client* client) {
  VARVE_ASSIGN_OR_RETURN(const Reply reply,
                         client->Call({"CHANGES", "SINCE", fmt::to_string(position()), "NAMESPACE",
                                       "ALL", "BLOCK", "50"}));
  if (reply.elements.size() != kReplyParts) return Wrong("a reply that makes no sense");
  if (reply.elements[0].text != history_id_) return Wrong("another history");
  const absl::MutexLock lock(&mutex_);
  for (const Reply& commit : reply.elements[3].elements) VARVE_RETURN_IF_ERROR(Take(commit));
  const int64_t next = reply.elements[1].integer;
  if (next < position_ || next < states_.back().version)
    return Wrong(fmt::format("the position {} lies before {}", next, position_));
  position_ = next;
  return absl::OkStatus();
}

absl::Status FeedMirror::Take(const Reply& commit) {
  const int64_t version = commit.elements[0].integer;
  if (version <= states_.back().version)
    return Wrong(fmt::format("version {} behind {}", version, states_.back().version));
  const std::vector<Reply>& operations = commit.elements[2].elements;
  for (const Reply& operation : operations) {
    if (operation.elements.size() != kFields) return Wrong("an operation that makes no sense");
    const absl::Status status = TakeOperation(operation);
    if (!status.ok())
      return Wrong(fmt::format("version {}: {}", version, std::string(status.message())));
  }
  ++figures_.commits;
  figures_.operations += operations.size();
  figures_.longest_commit = std::max(figures_.longest_commit, uint64_t{operations.size()});
  states_.push_back({.version = version, .sum = sum_, .history = places_[options_.history].sum});
  if (states_.size() > kStates) states_.pop_front();
  return absl::OkStatus();
}

absl::Status FeedMirror::TakeOperation(const Reply& operation) {
  const std::string& what = operation.elements[0].text;
  const std::string& name = operation.elements[1].text;
  const std::string& key = operation.elements[2].text;
  const std::string& value = operation.elements[3].text;
  if (what == "set") return TakeSet(name, key, value);
  if (what == "del" || what == "evicted" || what == "expired") return TakeRemoval(what, name, key);
  if (what == "delrange") {
    RemoveRange(name, key, value);
  } else if (what == "drop" || what == "flush") {
    RemoveRange(name, "", "");
  } else if (what == "clone") {
    Copy(key, name);
  } else if (what != "create") {
    return absl::InternalError(what + ", which nobody asked for");
  }
  return absl::OkStatus();
}

absl::Status FeedMirror::TakeSet(const std::string& name, const std::string& key,
                                 const std::string& value) {
  if (name == options_.history) {
    VARVE_RETURN_IF_ERROR(CheckCounter(key, value));
  } else if (const std::optional<ValueName> written = NameOf(value); written.has_value()) {
    Owner& owner = owners_[written->owner];
    if (written->number <= owner.last)
      return absl::InternalError(fmt::format("{} of owner {} comes behind {}", written->number,
                                             written->owner, owner.last));
    owner.last = written->number;
    ++owner.sets;
  }
  Change(name, key, RecordSum(key, value));
  return absl::OkStatus();
}

absl::Status FeedMirror::CheckCounter(const std::string& key, const std::string& value) {
  const std::optional<Content> content = Content::Of(value);
  if (!content.has_value()) return absl::InternalError(key + " becomes what nobody wrote");
  if (!content->counter) return absl::OkStatus();
  uint64_t& counter = counters_[key];
  if (content->number != counter + 1)
    return absl::InternalError(fmt::format("{} goes from {} to {}", key, counter, content->number));
  counter = content->number;
  return absl::OkStatus();
}

absl::Status FeedMirror::TakeRemoval(std::string_view what, const std::string& name,
                                     const std::string& key) {
  if (what == "evicted" && !options_.may_evict.contains(name))
    return absl::InternalError(fmt::format("{} is evicted from {}", key, name));
  if (what == "expired" && !options_.left_out.contains(name))
    return absl::InternalError(fmt::format("{} expires in {}", key, name));
  Place& place = places_[name];
  if (!place.records.contains(key))
    return absl::InternalError(fmt::format("{} of {}, which was not there: {}", key, name, what));
  if (what == "evicted") ++figures_.evicted;
  if (what == "expired") ++figures_.expired;
  if (what == "del") ++place.deletes;
  Change(name, key, 0);
  return absl::OkStatus();
}

void FeedMirror::Change(const std::string& name, const std::string& key, uint64_t sum) {
  Place& place = places_[name];
  uint64_t& record = place.records[key];
  const uint64_t change = sum - record;
  place.sum += change;
  if (!options_.left_out.contains(name)) sum_ += NamespaceSum(name, change);
  record = sum;
  if (sum == 0) place.records.erase(key);
}

void FeedMirror::RemoveRange(const std::string& name, const std::string& min,
                             const std::string& max) {
  Place& place = places_[name];
  const auto end = max.empty() ? place.records.end() : place.records.lower_bound(max);
  for (auto at = place.records.lower_bound(min); at != end;) {
    const std::string key = (at++)->first;
    Change(name, key, 0);
  }
}

void FeedMirror::Copy(const std::string& from, const std::string& to) {
  RemoveRange(to, "", "");
  const std::map<std::string, uint64_t, std::less<>> records = places_[from].records;
  for (const auto& [key, sum] : records) Change(to, key, sum);
}

int64_t FeedMirror::position() const {
  const absl::MutexLock lock(&mutex_);
  return position_;
}

bool FeedMirror::AwaitVersion(int64_t version) const {
  bool has_come = false;
  testing::Eventually([&] {
    const absl::MutexLock lock(&mutex_);
    has_come = position_ >= version;
    return has_come || has_ended_;
  });
  return has_come;
}

std::optional<StateAt> FeedMirror::At(int64_t version) const {
  const absl::MutexLock lock(&mutex_);
  const auto behind =
      std::upper_bound(states_.begin(), states_.end(), version,
                       [](int64_t wanted, const StateAt& state) { return wanted < state.version; });
  if (behind == states_.begin()) return std::nullopt;
  return *std::prev(behind);
}

StateAt FeedMirror::Now() const {
  const absl::MutexLock lock(&mutex_);
  return states_.back();
}

uint64_t FeedMirror::RecordsOf(const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  const auto place = places_.find(name);
  return place == places_.end() ? 0 : place->second.sum;
}

uint64_t FeedMirror::SetsOf(int owner) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second.sets;
}

uint64_t FeedMirror::DeletesIn(const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  const auto place = places_.find(name);
  return place == places_.end() ? 0 : place->second.deletes;
}

FeedFigures FeedMirror::figures() const {
  const absl::MutexLock lock(&mutex_);
  return figures_;
}

}  // namespace varve::prove
