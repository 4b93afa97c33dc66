// A proxy is a link between two programs that a test can cut. It takes connections on a port of its
// own and passes their bytes on to another port of this machine.
//
//   passing     bytes go on in both directions
//   stalled     connections stay, and nothing goes through them: a network that loses every packet
//   cut         connections are closed, and so is each new one
//
// Thread-safety: all functions may be called on any thread.
// Invariants: once Stall() or Cut() has returned, no byte is passed on until Restore().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve::prove {

class Proxy {
 public:
  Proxy();
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Returns a port that is free at present; 0: the system gives none.
  static uint16_t FreePort();

  // 0: the system gives no port.
  uint16_t port() const { return port_; }
  // New connections lead to this port of this machine from now on.
  void SetTarget(uint16_t target) ABSL_LOCKS_EXCLUDED(mutex_);

  void Cut() ABSL_LOCKS_EXCLUDED(mutex_) { Enter(Mode::kCut); }
  void Stall() ABSL_LOCKS_EXCLUDED(mutex_) { Enter(Mode::kStalled); }
  void Restore() ABSL_LOCKS_EXCLUDED(mutex_) { Enter(Mode::kPassing); }

 private:
  enum class Mode : uint8_t { kPassing, kStalled, kCut };
  struct Direction {
    int from = -1;
    int to = -1;
    std::string pending;  // was read and is not written yet
    bool at_end = false;  // nothing more comes from `from`
  };
  struct Connection {
    Direction there;
    Direction back;
  };

  void Enter(Mode mode) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until a socket is ready or somebody calls. Returns false once the proxy is to end.
  bool Await() ABSL_LOCKS_EXCLUDED(mutex_);
  void Accept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  int listener_ = -1;
  int wake_[2] = {-1, -1};  // a pipe: reader, writer
  uint16_t port_ = 0;
  absl::Mutex mutex_;  // held while bytes are passed on
  Mode mode_ ABSL_GUARDED_BY(mutex_) = Mode::kPassing;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  uint16_t target_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace varve::prove
