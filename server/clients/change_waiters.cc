#include "server/clients/change_waiters.h"

#include "server/clients/client_link.h"

namespace varve {

void ChangeWaiters::Wait(Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  mailboxes_.insert(mailbox);
  waiting_.store(mailboxes_.size());
}

void ChangeWaiters::Leave(Mailbox* mailbox) {
  absl::MutexLock lock(&mutex_);
  mailboxes_.erase(mailbox);
  waiting_.store(mailboxes_.size());
}

void ChangeWaiters::Wake() {
  word_.fetch_add(1);
  if (waiting_.load() == 0) return;
  absl::MutexLock lock(&mutex_);
  for (Mailbox* const mailbox : mailboxes_) mailbox->Nudge();
  mailboxes_.clear();
  waiting_.store(0);
}

// The fences order the count and what is durable: of a thread that counts and then looks, and one
// that has made something durable and then looks at the count, at least one sees the other.
void ChangeWaiters::BeginDiskWait() {
  disk_waits_.fetch_add(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ChangeWaiters::WakeForDisk() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (disk_waits_.load(std::memory_order_relaxed) > 0) Wake();
}

void ChangeWaiters::BeginBlock(ClientLink* client) {
  auto blocked = ClientLink::Blocked::kNo;
  if (client->blocked.compare_exchange_strong(blocked, ClientLink::Blocked::kWaits))
    blocked_.fetch_add(1);
}

void ChangeWaiters::EndBlock(ClientLink* client) {
  if (client->blocked.exchange(ClientLink::Blocked::kNo) != ClientLink::Blocked::kNo)
    blocked_.fetch_sub(1);
}

bool ChangeWaiters::Unblock(ClientLink* client, bool is_error) {
  using Blocked = ClientLink::Blocked;
  auto blocked = Blocked::kWaits;
  if (!client->blocked.compare_exchange_strong(blocked,
                                               is_error ? Blocked::kRefused : Blocked::kTimedOut))
    return false;
  client->mailbox.Nudge();
  return true;
}

}  // namespace varve
