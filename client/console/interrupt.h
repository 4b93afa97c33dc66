// Ctrl-C as a question that long work asks itself. Not thread-safe: one object at a time.
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
