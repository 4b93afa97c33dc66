#include "server/clients/key_tracking.h"

#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/types/span.h"
#include "server/access/permissions.h"
#include "server/clients/client_memory.h"
#include "server/clients/client_state.h"
#include "util/base/assert.h"
#include "util/resp/resp_writer.h"

namespace varve {
namespace {

constexpr std::string_view kChannel = "__redis__:invalidate";
constexpr uint64_t kNobody = 0;  // is no client's id
// Keys that leave a table that is too full when one is added, and when it is tidied.
constexpr size_t kMostAtOnce = 16;
constexpr size_t kMostWhenTidied = 4096;

// Takes keys that nobody tracks out of the table; returns whether these were all.
bool ForgetSome(TrackedKeys* keys) {
  for (size_t i = 0; i < kMostWhenTidied && keys->keys() > 0; ++i) (void)keys->TakeNext();
  return keys->keys() == 0;
}

}  // namespace

// One message in both forms in which it may leave, each encoded when it is needed first.
class InvalidationMessage {
 public:
  // Any key may have changed.
  explicit InvalidationMessage(ClientMemory* memory) : memory_(memory), any_(true) {}
  InvalidationMessage(ClientMemory* memory, absl::Span<const std::string_view> keys)
      : memory_(memory), keys_(keys) {}

  const Mailbox::Message& push() {
    if (push_ == nullptr) push_ = Encode(/*to_channel=*/false);
    return push_;
  }
  const Mailbox::Message& to_channel() {
    if (to_channel_ == nullptr) to_channel_ = Encode(/*to_channel=*/true);
    return to_channel_;
  }

 private:
  Mailbox::Message Encode(bool to_channel) const {
    ByteBuffer bytes;
    RespWriter head(&bytes, 3);
    head.Push(to_channel ? 3 : 2);
    head.Bulk(to_channel ? "message" : "invalidate");
    if (to_channel) head.Bulk(kChannel);
    RespWriter body(&bytes, to_channel ? 2 : 3);
    any_ ? body.NullArray() : body.Array(keys_.size());
    for (const std::string_view key : keys_) body.Bulk(key);
    return memory_->Count(std::string(bytes.view()));
  }

  ClientMemory* const memory_;
  const bool any_ = false;
  const absl::Span<const std::string_view> keys_;
  Mailbox::Message push_;
  Mailbox::Message to_channel_;
};

// --- Trackers ------------------------------------------------------------------------------------

KeyTracking::Totals KeyTracking::totals() const {
  absl::MutexLock lock(&mutex_);
  return {keys_.keys(), keys_.items(), prefixes_.size()};
}

KeyTracking::Tracker* KeyTracking::Find(uint64_t id) {
  const auto found = trackers_.find(id);
  return found == trackers_.end() ? nullptr : &found->second;
}

bool KeyTracking::Start(ClientState* client) {
  const TrackingMode& mode = client->modes.tracking;
  absl::MutexLock lock(&mutex_);
  if (mode.redirect != 0) {
    const bool found = registry_.Visit(mode.redirect, [&](ClientState& target) {
      mutex_.AssertHeld();
      targets_[mode.redirect] = &target;
      target.link.is_target.store(true);
    });
    if (!found) return false;
  }
  const auto [place, is_new] = trackers_.try_emplace(client->id);
  Tracker& tracker = place->second;
  tracker.client = client;
  tracker.redirect = mode.redirect;
  tracker.broadcast = mode.broadcast;
  tracker.noloop = mode.noloop;
  tracker.broken = false;
  tracker.places.try_emplace(client->space, client->space_name);
  if (mode.broadcast) {
    tracker.epoch = users_.epoch().load(std::memory_order_acquire);
    tracker.user = users_.Find(client->user_name);
  }
  if (is_new) count_.fetch_add(1);
  VARVE_ASSERT(count_.load() == trackers_.size());
  return true;
}

void KeyTracking::Stop(ClientState* client) {
  absl::MutexLock lock(&mutex_);
  if (trackers_.erase(client->id) == 0) return;
  count_.fetch_sub(1);
  VARVE_ASSERT(count_.load() == trackers_.size());
  if (trackers_.empty() && !ForgetSome(&keys_)) untidy_.store(true, std::memory_order_relaxed);
}

void KeyTracking::AddPrefix(const ClientState& client, std::string_view prefix) {
  absl::MutexLock lock(&mutex_);
  prefixes_.Add(prefix, client.id);
}

void KeyTracking::RemovePrefix(const ClientState& client, std::string_view prefix) {
  absl::MutexLock lock(&mutex_);
  prefixes_.Remove(prefix, client.id);
}

void KeyTracking::EndTarget(const ClientState& client) {
  absl::MutexLock lock(&mutex_);
  if (targets_.erase(client.id) == 0) return;
  ByteBuffer bytes;
  RespWriter push(&bytes, 3);
  push.Push(2);
  push.Bulk("tracking-redir-broken");
  push.Integer(static_cast<int64_t>(client.id));
  const Mailbox::Message message = memory_->Count(std::string(bytes.view()));
  for (auto& [id, tracker] : trackers_) {
    if (tracker.redirect != client.id || tracker.client == &client) continue;
    tracker.broken = true;
    tracker.client->link.tracking.fetch_or(ClientLink::kRedirectionBroken);
    tracker.client->link.mailbox.Deliver(message, kNoSequence, Mailbox::Audience::kThreeOnly);
  }
}

// --- The table -----------------------------------------------------------------------------------

bool KeyTracking::TooFull() const {
  const size_t most = max_keys_.load(std::memory_order_relaxed);
  return (most > 0 && keys_.keys() > most) || keys_.bytes() > kMaxBytes;
}

void KeyTracking::MakeRoom(size_t most) {
  for (; most > 0 && TooFull(); --most) {
    const std::optional<TrackedKeys::Entry> entry = keys_.TakeNext();
    VARVE_ASSERT(entry.has_value());
    TellOfKey(kDefaultNamespace, entry->key, entry->clients, kNobody);
  }
  if (TooFull()) untidy_.store(true, std::memory_order_relaxed);
}

void KeyTracking::Remember(const ClientState& client, Arguments keys) {
  absl::MutexLock lock(&mutex_);
  Tracker* const tracker = Find(client.id);
  VARVE_ASSERT(tracker != nullptr && !tracker->broadcast);
  tracker->places.try_emplace(client.space, client.space_name);
  for (const std::string_view key : keys) {
    keys_.Add(client.space, key, client.id);
    MakeRoom(kMostAtOnce);
  }
}

void KeyTracking::NotePlace(ClientState* client) {
  TrackingMode& mode = client->modes.tracking;
  const uint64_t user = client->rights.user().identity;
  if (mode.known_space == client->space && mode.known_user == user) return;
  absl::MutexLock lock(&mutex_);
  Tracker* const tracker = Find(client->id);
  VARVE_ASSERT(tracker != nullptr && tracker->broadcast);
  tracker->places.insert_or_assign(client->space, client->space_name);
  if (tracker->user == nullptr || tracker->user->identity != user) {
    // What it holds may be keys that it will not hear of any more.
    InvalidationMessage message(memory_);
    Tell(*tracker, &message);
    tracker->epoch = users_.epoch().load(std::memory_order_acquire);
    tracker->user = users_.Find(client->rights.user().name);
  }
  mode.known_space = client->space;
  mode.known_user = user;
}

void KeyTracking::Tidy() {
  if (!untidy_.load(std::memory_order_relaxed)) [[likely]]
    return;
  absl::MutexLock lock(&mutex_);
  untidy_.store(false, std::memory_order_relaxed);
  MakeRoom(kMostWhenTidied);
  if (trackers_.empty() && !ForgetSome(&keys_)) untidy_.store(true, std::memory_order_relaxed);
}

// --- Messages ------------------------------------------------------------------------------------

void KeyTracking::Tell(const Tracker& tracker, InvalidationMessage* message) {
  if (tracker.broken) return;
  if (tracker.redirect == 0) {
    tracker.client->link.mailbox.Deliver(message->push(), kNoSequence,
                                         Mailbox::Audience::kThreeOnly);
    return;
  }
  const auto target = targets_.find(tracker.redirect);
  VARVE_ASSERT(target != targets_.end());
  ClientLink& link = target->second->link;
  if (link.protocol.load() >= 3) {
    link.mailbox.Deliver(message->push(), kNoSequence, Mailbox::Audience::kThreeOnly);
  } else if (link.Subscribed()) {
    link.mailbox.Deliver(message->to_channel(), kNoSequence);
  }
}

void KeyTracking::TellOfKey(NamespaceId space, std::string_view key,
                            const TrackedKeys::ClientIds& clients, uint64_t writer,
                            uint64_t reader) {
  InvalidationMessage message(memory_, absl::MakeSpan(&key, 1));
  for (const uint64_t id : clients) {
    const Tracker* const tracker = Find(id);
    // One that broadcasts now hears of what it read before by its prefixes.
    if (tracker == nullptr || tracker->broadcast) continue;
    if ((id == writer && tracker->noloop) || id == reader) {
      keys_.Add(space, key, id);
    } else {
      Tell(*tracker, &message);
    }
  }
}

void KeyTracking::TellOfRange(const WrittenKeys::Range& range, uint64_t writer) {
  InvalidationMessage any(memory_);
  std::vector<TrackedKeys::Entry> taken;
  const bool few = keys_.TakeRange(range.space, range.begin, range.end, kMostKeysOfRange, &taken);
  for (const TrackedKeys::Entry& entry : taken)
    TellOfKey(range.space, entry.key, entry.clients, writer);
  absl::btree_set<uint64_t> broadcasting;
  prefixes_.ForEachOfRange(range.begin, range.end,
                           [&](const std::string&, const TrackedPrefixes::ClientIds& clients) {
                             broadcasting.insert(clients.begin(), clients.end());
                           });
  for (auto& [id, tracker] : trackers_) {
    if (!tracker.places.contains(range.space) || (id == writer && tracker.noloop)) continue;
    if (tracker.broadcast ? broadcasting.contains(id) : !few) Tell(tracker, &any);
  }
}

void KeyTracking::TellOfSpace(NamespaceId space) {
  InvalidationMessage any(memory_);
  for (auto& [id, tracker] : trackers_) {
    if (tracker.places.contains(space)) Tell(tracker, &any);
  }
}

void KeyTracking::LookUpUser(Tracker* tracker) {
  const uint64_t epoch = users_.epoch().load(std::memory_order_acquire);
  if (tracker->epoch == epoch || tracker->user == nullptr) return;
  tracker->epoch = epoch;
  UserPointer now = users_.Find(tracker->user->name);
  if (now == tracker->user) return;
  const bool is_same = now != nullptr && now->identity == tracker->user->identity;
  tracker->user = is_same ? std::move(now) : nullptr;  // the connection is about to close
  InvalidationMessage any(memory_);
  Tell(*tracker, &any);
}

bool KeyTracking::MayLearn(Tracker* tracker, const WrittenKeys::Key& key) {
  const auto place = tracker->places.find(key.first);
  if (place == tracker->places.end() || tracker->user == nullptr) return false;
  return tracker->user->unrestricted ||
         MayReadKey(*tracker->user, key.second, {.database = key.first, .name = place->second});
}

void KeyTracking::Broadcast(const WrittenKeys& written, uint64_t writer) {
  absl::btree_map<std::string_view, std::vector<const WrittenKeys::Key*>> by_prefix;
  absl::flat_hash_map<std::string_view, const TrackedPrefixes::ClientIds*> clients_of;
  for (const WrittenKeys::Key& key : written.keys()) {
    prefixes_.ForEachOfKey(
        key.second, [&](const std::string& prefix, const TrackedPrefixes::ClientIds& clients) {
          by_prefix[prefix].push_back(&key);
          clients_of[prefix] = &clients;
        });
  }
  std::vector<std::string_view> all, learned;
  for (const auto& [prefix, keys] : by_prefix) {
    all.clear();
    for (const WrittenKeys::Key* key : keys) all.push_back(key->second);
    InvalidationMessage shared(memory_, all);
    for (const uint64_t id : *clients_of[prefix]) {
      Tracker* const tracker = Find(id);
      VARVE_ASSERT(tracker != nullptr && tracker->broadcast);
      if (id == writer && tracker->noloop) continue;
      LookUpUser(tracker);
      learned.clear();
      for (const WrittenKeys::Key* key : keys) {
        if (MayLearn(tracker, *key)) learned.push_back(key->second);
      }
      if (learned.size() == all.size()) {
        Tell(*tracker, &shared);
      } else if (!learned.empty()) {
        InvalidationMessage own(memory_, learned);
        Tell(*tracker, &own);
      }
    }
  }
}

void KeyTracking::Invalidate(WrittenKeys* written, uint64_t writer) {
  if (written->empty()) return;
  written->Sort();
  std::vector<TrackedKeys::Space> unused;  // destroyed after the lock is free
  absl::MutexLock lock(&mutex_);
  for (const NamespaceId space : written->spaces()) {
    TellOfSpace(space);
    unused.push_back(keys_.TakeSpace(space));
  }
  for (const WrittenKeys::Range& range : written->ranges()) TellOfRange(range, writer);
  for (const auto& [space, key] : written->keys()) {
    if (keys_.keys() == 0) break;
    TellOfKey(space, key, keys_.Take(space, key), writer);
  }
  if (!prefixes_.empty()) Broadcast(*written, writer);
}

void KeyTracking::FoundExpired(NamespaceId space, std::string_view key, uint64_t reader) {
  absl::MutexLock lock(&mutex_);
  TellOfKey(space, key, keys_.Take(space, key), kNobody, reader);
}

void KeyTracking::InvalidateAll() {
  absl::MutexLock lock(&mutex_);
  InvalidationMessage any(memory_);
  for (auto& [id, tracker] : trackers_) Tell(tracker, &any);
}

void KeyTracking::InvalidateAllOf(const ClientState& client) {
  absl::MutexLock lock(&mutex_);
  InvalidationMessage any(memory_);
  if (const Tracker* const tracker = Find(client.id); tracker != nullptr) Tell(*tracker, &any);
}

}  // namespace varve
