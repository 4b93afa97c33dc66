#include "client/console/interrupt.h"

namespace varve {
namespace {

volatile sig_atomic_t interrupted = 0;
void OnInterrupt(int) { interrupted = 1; }

}  // namespace

Interrupt::Interrupt(Signals signals)
    : takes_terminate_(signals == Signals::kInterruptAndTerminate) {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_);
  if (takes_terminate_) sigaction(SIGTERM, &action, &before_terminate_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_, nullptr);
  if (takes_terminate_) sigaction(SIGTERM, &before_terminate_, nullptr);
}

bool Interrupt::happened() const { return interrupted != 0; }

}  // namespace varve
