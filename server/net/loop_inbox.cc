#include "server/net/loop_inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "util/base/assert.h"

namespace varve {

LoopInbox::LoopInbox() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

LoopInbox::~LoopInbox() {
  if (event_ >= 0) ::close(event_);
}

void LoopInbox::Wake() {
  if (woken_.exchange(true)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof(one));
}

void LoopInbox::Leave(Connection connection) {
  VARVE_ASSERT(connection.descriptor >= 0);
  {
    absl::MutexLock lock(&mutex_);
    contents_.connections.push_back(std::move(connection));
  }
  Wake();
}

void LoopInbox::LeaveCompleted(std::shared_ptr<Session> session) {
  VARVE_ASSERT(session != nullptr);
  {
    absl::MutexLock lock(&mutex_);
    contents_.completed.push_back(std::move(session));
  }
  Wake();
}

void LoopInbox::LeaveMailed(std::shared_ptr<Session> session) {
  VARVE_ASSERT(session != nullptr);
  {
    absl::MutexLock lock(&mutex_);
    contents_.mailed.push_back(std::move(session));
  }
  Wake();
}

void LoopInbox::NoteDurability() {
  durability_changed_.store(true);
  Wake();
}

void LoopInbox::RequestDrain() {
  draining_.store(true);
  Wake();
}

void LoopInbox::RequestAbort() {
  aborted_.store(true);
  Wake();
}

bool LoopInbox::Take(Contents* contents) {
  VARVE_ASSERT(contents->connections.empty() && contents->completed.empty() &&
               contents->mailed.empty());
  absl::MutexLock lock(&mutex_);
  if (contents_.connections.empty() && contents_.completed.empty() && contents_.mailed.empty())
    return false;
  contents_.connections.swap(contents->connections);
  contents_.completed.swap(contents->completed);
  contents_.mailed.swap(contents->mailed);
  return true;
}

}  // namespace varve
