// The interrupt turns Ctrl-C, and SIGTERM if it is asked to, into a flag that long work looks at.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <signal.h>

#include <cstdint>

namespace varve {

// While it lives, the first signal only makes happened() true; a second one ends the process, in
// case the server does not answer.
class Interrupt {
 public:
  enum class Signals : uint8_t { kInterrupt, kInterruptAndTerminate };

  explicit Interrupt(Signals signals = Signals::kInterrupt);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool happened() const;

 private:
  const bool takes_terminate_;
  struct sigaction before_;
  struct sigaction before_terminate_;
};

}  // namespace varve
