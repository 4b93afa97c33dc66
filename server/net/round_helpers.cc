#include "server/net/round_helpers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/execution/execution_policy.h"
#include "util/base/assert.h"

namespace varve {

void RoundHelpers::Share(std::vector<Session*>* sessions) {
  VARVE_ASSERT(lent_ == 0);
  if (sessions->size() < 2 || server_->options.execution != Execution::kAdaptive) return;
  int64_t worth = 0;
  for (Session* session : *sessions) worth += session->executor().WorthSharing();
  const size_t wanted = std::min(WantedHelpers(worth), pool_->threads());
  if (wanted == 0) return;
  std::erase_if(*sessions, [this](Session* session) {
    if (session->executor().WorthSharing() == 0 || !shared_.Add(session)) return false;
    session->Lend();
    return true;
  });
  lent_ = shared_.added();
  shared_.Open();
  while (helpers_.load(std::memory_order_relaxed) < wanted) {
    helpers_.fetch_add(1, std::memory_order_relaxed);
    if (pool_->TrySubmit([this] { Help(); })) continue;
    helpers_.fetch_sub(1, std::memory_order_relaxed);
    break;
  }
}

void RoundHelpers::Help() {
  while (Session* const session = shared_.TakeLast()) session->ExecuteOnWorker();
  const auto helpers = helpers_.fetch_sub(1, std::memory_order_relaxed);
  VARVE_ASSERT(helpers > 0);
}

Session* RoundHelpers::TakeBack() {
  if (lent_ == 0) return nullptr;
  Session* const session = shared_.TakeFirst();
  if (session == nullptr) {  // helpers have the others
    server_->statistics.batches_pooled.fetch_add(std::exchange(lent_, 0),
                                                 std::memory_order_relaxed);
    return nullptr;
  }
  --lent_;
  session->TakeBack();
  return session;
}

}  // namespace varve
