// Feed reading measures how readers of changes get on: how fast one of them reads what was kept,
// and how long after the writer's reply a change reaches it. Varve's change feed is read by
// CHANGES, or as a stream by XREAD; at Redis, where a program has to write its changes into a
// stream itself, each write is an XADD and each read an XREAD.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace varve::bench {

struct FeedReadResult {
  uint64_t changes = 0;
  double seconds = 0;
};

struct FeedLagResult {
  uint64_t changes = 0;
  double p50 = 0;  // seconds
  double p99 = 0;
};

class FeedReading {
 public:
  struct Options {
    std::string server;  // for messages
    uint16_t port = 0;   // of 127.0.0.1
    bool is_redis = false;
    bool by_changes = false;  // else by XREAD
    size_t value_size = 100;
  };

  // Connects. Ends the program where it fails, as the other functions do.
  explicit FeedReading(Options options);

  // Makes so many changes, of as many keys.
  void Fill(uint64_t changes);
  // Reads all changes from the first one on. Requires: Fill().
  FeedReadResult ReadAll();
  // Makes one change after the other for about so many seconds, each while the reader waits for it.
  FeedLagResult Lag(double seconds);

 private:
  std::vector<std::string> WriteRequest(uint64_t number) const;
  std::vector<std::string> ReadRequest(bool waits) const;
  // Returns how many changes the reply has, and moves the reader behind them.
  uint64_t Take(const Reply& reply);
  [[noreturn]] void Refuse(const std::string& why) const;

  const Options options_;
  const std::string value_;
  std::unique_ptr<Client> writer_;
  std::unique_ptr<Client> reader_;
  std::string place_;  // the version, or the id in the stream, that was read last
};

}  // namespace varve::bench
