// The turns of the TLS handshakes of one I/O loop. At most kMost of them are with the pool at a
// time, so that a crowd of new clients does not stand before the batches of those who are served;
// the others wait here in the order in which they came.
//
// Thread-safety: belongs to the loop's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "util/base/assert.h"

namespace varve {

template <typename Session>
class HandshakeTurns {
 public:
  // About 10 ms of work for one worker.
  static constexpr size_t kMost = 16;

  // Returns whether the session may go to the pool now; if not, it waits for its turn.
  bool Take(const std::shared_ptr<Session>& session) {
    if (out_ < kMost) {
      ++out_;
      return true;
    }
    waiting_.push_back(session);
    return false;
  }

  // One is back from the pool, or could not go there. Returns the session whose turn it is now, if
  // one that is still open waits.
  std::shared_ptr<Session> GiveBack() {
    VARVE_ASSERT(out_ > 0);
    --out_;
    while (!waiting_.empty()) {
      const std::shared_ptr<Session> next = waiting_.front().lock();
      waiting_.pop_front();
      if (next != nullptr && !next->closed()) return next;
    }
    return nullptr;
  }

 private:
  size_t out_ = 0;
  std::deque<std::weak_ptr<Session>> waiting_;
};

}  // namespace varve
