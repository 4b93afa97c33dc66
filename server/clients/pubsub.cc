#include "server/clients/pubsub.h"

#include <initializer_list>
#include <memory>

#include "server/clients/client_memory.h"
#include "server/requests/key_work.h"
#include "util/base/assert.h"
#include "util/resp/resp_writer.h"

namespace varve {
namespace {

// Of leaving a message, in the units of GlobCost().
constexpr size_t kDeliveryCost = 4;

Mailbox::Message Encode(ClientMemory* memory, std::initializer_list<std::string_view> parts) {
  ByteBuffer bytes;
  RespWriter writer(&bytes, 3);
  writer.Push(parts.size());
  for (const std::string_view part : parts) writer.Bulk(part);
  return memory->Count(std::string(bytes.view()));
}

}  // namespace

void PubSub::Subscribe(Kind kind, std::string_view name, Mailbox* mailbox) {
  VARVE_ASSERT(mailbox != nullptr);
  VARVE_ASSERT(name.size() <= kMaxChannelName);
  absl::MutexLock lock(&mutex_);
  if (tables_[static_cast<size_t>(kind)][std::string(name)].insert(mailbox).second)
    subscriptions_.fetch_add(1);
}

void PubSub::Unsubscribe(Kind kind, std::string_view name, Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  Table& table = tables_[static_cast<size_t>(kind)];
  const auto found = table.find(name);
  if (found == table.end() || found->second.erase(mailbox) == 0) return;
  VARVE_ASSERT(Any());
  subscriptions_.fetch_sub(1);
  if (found->second.empty()) table.erase(found);
}

bool PubSub::DeliverToAll(const Mailboxes& mailboxes, std::initializer_list<std::string_view> parts,
                          ClientMemory* memory, Publication* publication,
                          absl::FunctionRef<bool(size_t)> spent) {
  for (auto next = mailboxes.upper_bound(publication->last); next != mailboxes.end(); ++next) {
    Mailbox* const mailbox = *next;
    size_t cost = kDeliveryCost;
    if (publication->encoded == nullptr && !mailbox->overflowed()) {
      publication->encoded = Encode(memory, parts);
      cost += publication->encoded->size() / kBytesPerKey;
    }
    if (publication->encoded != nullptr &&
        mailbox->Deliver(publication->encoded, publication->durable_after)) {
      ++publication->woken;
    }
    publication->last = mailbox;
    ++publication->deliveries;
    VARVE_ASSERT(publication->woken <= publication->deliveries);
    if (spent(cost)) return false;
  }
  publication->last = nullptr;
  publication->encoded = nullptr;
  return true;
}

bool PubSub::Publish(Publication* publication, absl::FunctionRef<bool(size_t)> spent) {
  if (!Any()) return true;
  const std::string_view channel = publication->channel;
  const std::string_view message = publication->message;
  VARVE_ASSERT(publication->kind != Kind::kPattern);
  absl::ReaderMutexLock lock(&mutex_);
  if (!publication->sent_to_channel) {
    const Table& channels = tables_[static_cast<size_t>(publication->kind)];
    const std::string_view word = publication->kind == Kind::kShard ? "smessage" : "message";
    const auto found = channels.find(channel);
    if (found != channels.end() &&
        !DeliverToAll(found->second, {word, channel, message}, memory_, publication, spent)) {
      return false;
    }
    publication->sent_to_channel = true;
    publication->last = nullptr;  // also where all who were left have gone
    publication->encoded = nullptr;
  }
  if (publication->kind == Kind::kShard) return true;
  const Table& patterns = tables_[static_cast<size_t>(Kind::kPattern)];
  for (auto place = patterns.lower_bound(publication->next_pattern); place != patterns.end();
       ++place) {
    const auto& [pattern, mailboxes] = *place;
    const bool goes_on = publication->last != nullptr && pattern == publication->next_pattern;
    if (!goes_on) {
      publication->last = nullptr;
      publication->encoded = nullptr;
    }
    if ((goes_on || GlobMatches(pattern, channel)) &&
        !DeliverToAll(mailboxes, {"pmessage", pattern, channel, message}, memory_, publication,
                      spent)) {
      publication->next_pattern = pattern;
      return false;
    }
    if (spent(GlobCost(pattern, channel))) {
      publication->next_pattern = pattern + '\0';
      return false;
    }
  }
  return true;
}

std::vector<std::string> PubSub::Names(Kind kind, std::string_view from, size_t count) const {
  std::vector<std::string> names;
  absl::ReaderMutexLock lock(&mutex_);
  const Table& table = tables_[static_cast<size_t>(kind)];
  for (auto place = table.lower_bound(from); place != table.end() && names.size() < count;
       ++place) {
    names.push_back(place->first);
  }
  return names;
}

void PubSub::ForEachSubscription(
    Kind kind, absl::FunctionRef<void(std::string_view, const Mailbox*)> visit) const {
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [name, mailboxes] : tables_[static_cast<size_t>(kind)]) {
    for (const Mailbox* const mailbox : mailboxes) visit(name, mailbox);
  }
}

size_t PubSub::Subscribers(Kind kind, std::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const Table& table = tables_[static_cast<size_t>(kind)];
  const auto found = table.find(name);
  return found == table.end() ? 0 : found->second.size();
}

size_t PubSub::Count(Kind kind) const {
  absl::ReaderMutexLock lock(&mutex_);
  return tables_[static_cast<size_t>(kind)].size();
}

}  // namespace varve
