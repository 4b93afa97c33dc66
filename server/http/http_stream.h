// An HTTP stream is a reply that has no end yet: a head, and then pieces, each of them made once
// the client has taken the one before. The listener's thread never waits for a piece.
//
// Thread-safety: the listener's thread calls all functions.
#pragma once

#include <chrono>
#include <string>

namespace varve {

class HttpStream {
 public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~HttpStream() = default;
  // Returns the next piece if it has been made. If not, and there may be one, another thread makes
  // it and has the listener ask again.
  virtual std::string TakePiece(Time now) = 0;
  // Returns whether nothing follows what was taken.
  virtual bool ended() const = 0;
};

}  // namespace varve
