#include "server/pubsub.h"

#include <algorithm>
#include <initializer_list>
#include <memory>

#include "server/client_memory.h"
#include "server/glob.h"
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

size_t PubSub::Publish(std::string_view channel, std::string_view message, SequenceNumber gate) {
  if (subscriptions_.load(std::memory_order_acquire) == 0) return 0;
  absl::ReaderMutexLock lock(&mutex_);
  size_t deliveries = 0;
  const Table& channels = tables_[static_cast<size_t>(Kind::kChannel)];
  if (const auto found = channels.find(channel); found != channels.end()) {
    const Mailbox::Message encoded = Encode(memory_, {"message", channel, message});
    for (Mailbox* mailbox : found->second) mailbox->Deliver(encoded, gate);
    deliveries += found->second.size();
  }
  for (const auto& [pattern, mailboxes] : tables_[static_cast<size_t>(Kind::kPattern)]) {
    if (!GlobMatches(pattern, channel)) continue;
    const Mailbox::Message encoded = Encode(memory_, {"pmessage", pattern, channel, message});
    for (Mailbox* mailbox : mailboxes) mailbox->Deliver(encoded, gate);
    deliveries += mailboxes.size();
  }
  return deliveries;
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

std::vector<std::string> PubSub::Names(Kind kind, std::string_view pattern) const {
  std::vector<std::string> names;
  {
    absl::ReaderMutexLock lock(&mutex_);
    for (const auto& [name, mailboxes] : tables_[static_cast<size_t>(kind)]) {
      if (pattern.empty() || GlobMatches(pattern, name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
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
