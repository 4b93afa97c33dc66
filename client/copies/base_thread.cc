#include "client/copies/base_thread.h"

#include <memory>

#include "client/client.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {

void BaseThread::Start() {
  VARVE_ASSERT(!is_running());
  done_ = cancelled_ = false;
  thread_ = std::thread([this] {
    NameThread("varve-base");
    copied_ = Copy();
    done_.store(true, std::memory_order_release);
  });
}

absl::Status BaseThread::Copy() {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(connection_));
  return target_.CopyBase(client.get(), [this] { return cancelled_.load(); });
}

absl::Status BaseThread::Finish() {
  VARVE_ASSERT(is_running());
  thread_.join();
  return copied_;
}

void BaseThread::Cancel() {
  if (!is_running()) return;
  cancelled_ = true;
  thread_.join();
}

}  // namespace varve
