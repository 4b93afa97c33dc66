// Work that a server does behind requests: flushing and merging in Varve (COMPACT, over and over,
// each time all that was written since with everything there is), rewriting the log in Redis
// (BGREWRITEAOF).
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
