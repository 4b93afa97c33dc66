// The interrupt turns Ctrl-C into a flag that long work looks at.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <signal.h>

namespace varve {

// While it lives, the first Ctrl-C only makes happened() true; a second one ends the process, in
// case the server does not answer.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool happened() const;

 private:
  struct sigaction before_;
};

}  // namespace varve
