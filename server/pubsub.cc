#include "server/pubsub.h"

#include <initializer_list>
#include <memory>
#include <utility>

#include "server/client_memory.h"
#include "util/resp_writer.h"

namespace varve {
namespace {

Mailbox::Message Encode(ClientMemory* memory, std::initializer_list<std::string_view> parts) {
  ByteBuffer bytes;
  RespWriter writer(&bytes, 3);
  writer.Push(parts.size());
  for (const std::string_view part : parts) writer.Bulk(part);
  return memory->Count(std::string(bytes.view()));
}

}  // namespace

void PubSub::Subscribe(Kind kind, std::string_view name, Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  if (tables_[static_cast<size_t>(kind)][std::string(name)].insert(mailbox).second) subscriptions_.fetch_add(1);
}

void PubSub::Unsubscribe(Kind kind, std::string_view name, Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  Table& table = tables_[static_cast<size_t>(kind)];
  const auto found = table.find(name);
  if (found == table.end() || found->second.erase(mailbox) == 0) return;
  subscriptions_.fetch_sub(1);
  if (found->second.empty()) table.erase(found);
}

bool PubSub::Publish(Publication* publication, absl::FunctionRef<bool(size_t)> spent) {
  if (subscriptions_.load(std::memory_order_acquire) == 0) return true;
  const std::string_view channel = publication->channel;
  const std::string_view message = publication->message;
  const SequenceNumber gate = publication->gate;
  absl::ReaderMutexLock lock(&mutex_);
  if (!std::exchange(publication->sent_to_channel, true)) {
    const Table& channels = tables_[static_cast<size_t>(Kind::kChannel)];
    if (const auto found = channels.find(channel); found != channels.end()) {
      const Mailbox::Message encoded = Encode(memory_, {"message", channel, message});
      for (Mailbox* mailbox : found->second) mailbox->Deliver(encoded, gate);
      publication->deliveries += found->second.size();
    }
  }
  const Table& patterns = tables_[static_cast<size_t>(Kind::kPattern)];
  for (auto place = patterns.lower_bound(publication->next_pattern); place != patterns.end(); ++place) {
    const auto& [pattern, mailboxes] = *place;
    if (GlobMatches(pattern, channel)) {
      const Mailbox::Message encoded = Encode(memory_, {"pmessage", pattern, channel, message});
      for (Mailbox* mailbox : mailboxes) mailbox->Deliver(encoded, gate);
      publication->deliveries += mailboxes.size();
    }
    if (spent(GlobCost(pattern, channel))) {
      publication->next_pattern = pattern + '\0';
      return false;
    }
  }
  return true;
}

size_t PubSub::PublishShard(std::string_view channel, std::string_view message) {
  if (subscriptions_.load(std::memory_order_acquire) == 0) return 0;
  absl::ReaderMutexLock lock(&mutex_);
  const Table& channels = tables_[static_cast<size_t>(Kind::kShard)];
  const auto found = channels.find(channel);
  if (found == channels.end()) return 0;
  const Mailbox::Message encoded = Encode(memory_, {"smessage", channel, message});
  for (Mailbox* mailbox : found->second) mailbox->Deliver(encoded, kNoSequence);
  return found->second.size();
}

std::vector<std::string> PubSub::Names(Kind kind, std::string_view from, size_t count) const {
  std::vector<std::string> names;
  absl::ReaderMutexLock lock(&mutex_);
  const Table& table = tables_[static_cast<size_t>(kind)];
  for (auto place = table.lower_bound(from); place != table.end() && names.size() < count; ++place) {
    names.push_back(place->first);
  }
  return names;
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
