// Background work keeps a server busy behind its requests: Varve with COMPACT, over and over, which
// each time flushes what was written since and merges it with all the rest; Redis with rewriting
// its log (BGREWRITEAOF).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace varve::bench {

// Keeps the server at it from its making to its end, from a thread of its own. Servers without such
// work are left alone.
class BackgroundWork {
 public:
  BackgroundWork(const std::string& contender, uint16_t port);
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

 private:
  void Run(const std::string& command, uint16_t port);

  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace varve::bench
