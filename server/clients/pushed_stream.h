// A pushed stream is a mode of a connection in which the server sends messages that it reads from
// the store, as far as the client takes them: a step makes the next message, and no step is made
// while an earlier message waits for the client. So a client that takes nothing costs one message.
//
//   loop's thread:  if (stream->TryBegin(&client)) ... a thread of the pool: stream->Step();
//
// Thread-safety: the thread that has the session calls TryBegin() and Rest(); Step() may run on any
// thread; End() and ended() may be called on any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

namespace varve {

struct ClientState;

class PushedStream {
 public:
  virtual ~PushedStream() = default;

  // Returns whether a step is to be made now; until it has been made, or Abandon() was called, no
  // other one begins. The stream has the rights that the client has at this moment.
  [[nodiscard]] virtual bool TryBegin(ClientState* client) = 0;
  // No thread was there for the step.
  virtual void Abandon() = 0;
  // Returns whether a step has begun and not ended.
  virtual bool running() const = 0;
  // Makes one step: delivers a message to the client's mailbox, or finds that there is none yet.
  virtual void Step() = 0;
  // Gives back what keeps memory and files of the store in use: the client takes nothing at
  // present.
  virtual void Rest() = 0;
  // No message is delivered from now on.
  virtual void End() = 0;
  virtual bool ended() const = 0;
  // Returns since when the stream has held a snapshot of the store; the epoch: it holds none.
  virtual std::chrono::steady_clock::time_point snapshot_since() const = 0;
};

// The turns of the server's streams bound how many of them make a message, or have made one of
// which the connection has taken nothing yet. Without them, a thousand streams that begin together
// take the memory of a thousand messages: 320 MiB for commits of 256 KiB.
//
// Thread-safety: all functions may be called on any thread.
class StreamTurns {
 public:
  using Turn = std::shared_ptr<void>;  // is given back when it is destroyed

  // Returns null if all turns are taken.
  Turn Take() {
    if (taken_.fetch_add(1) >= kMost) {
      taken_.fetch_sub(1);
      return nullptr;
    }
    return {this, [](StreamTurns* turns) { turns->taken_.fetch_sub(1); }};
  }

 private:
  static constexpr int kMost = 16;

  std::atomic<int> taken_{0};
};

}  // namespace varve
