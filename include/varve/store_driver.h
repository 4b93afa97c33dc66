// A store driver has one thread do a remote store's work with the network for the calls that this
// thread makes. The thread drives the store where it would wait for events of its own otherwise, so
// that an answer reaches it without another thread in between.
//
// Thread-safety: The thread that asked for the driver makes all calls, and destroys it. Calls of
// the store that are not answered by then are answered later, on another thread.
// Requires: The driver is destroyed before the store is closed.
#pragma once

#include <chrono>

#include "absl/functional/function_ref.h"

namespace varve {

class StoreDriver {
 public:
  virtual ~StoreDriver() = default;

  // Does what can be done at once, and answers what has come.
  virtual void Poll() = 0;
  // Goes on with it, and waits, until `is_done` holds, until the descriptor that was given for the
  // driver can be read, or for so long at most.
  virtual void Wait(std::chrono::milliseconds most, absl::FunctionRef<bool()> is_done) = 0;
};

}  // namespace varve
