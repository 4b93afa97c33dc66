// Stalled readers ask for the stream of all changes and take nothing of it: what they cost the
// server is memory, until they end.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace varve::bench {

class StalledReaders {
 public:
  // Connects so many readers to the server of 127.0.0.1, and waits until each is being sent
  // something. Ends the program where it fails.
  StalledReaders(const std::string& server, uint16_t port, int count);
  ~StalledReaders();
  StalledReaders(const StalledReaders&) = delete;
  StalledReaders& operator=(const StalledReaders&) = delete;

 private:
  std::vector<int> sockets_;
};

}  // namespace varve::bench
