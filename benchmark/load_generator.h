// A cheap client with many connections: one thread, epoll, plain non-blocking sockets, requests made by rewriting the
// digits of a prepared buffer. On a small machine the client shares the processor with the server, so what it costs
// distorts every figure.
//
// Each connection sends `pipeline` requests at once and the next ones when all their replies are there, as
// redis-benchmark does. The latency of a request runs from that send to the receive call that brought its reply.
//
// Keys are "key:" and 12 digits, or more of them; a value begins with its key, and the reply to a GET is checked for it. Whatever is not
// the expected reply ends the benchmark. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "benchmark/histogram.h"

namespace varve::bench {

enum class Operation { kSet, kGet };

struct Load {
  std::string server;  // for messages
  uint16_t port = 0;   // of 127.0.0.1
  Operation operation = Operation::kSet;
  int connections = 50;
  int pipeline = 1;
  size_t value_size = 100;
  size_t key_size = 16;         // at least that
  uint64_t keys = 1'000'000;    // drawn at random from these ...
  bool every_key_once = false;  // ... or each once, in order, whatever the times below say
  bool check_values = true;
  double warm_up_seconds = 0.3;
  double seconds = 2;
};

struct LoadResult {
  uint64_t requests = 0;  // answered within `seconds`
  double seconds = 0;
  double server_cpu_seconds = 0;
  double p50 = 0;  // seconds
  double p99 = 0;
  double p999 = 0;  // below 0: not known
};

// `server_cpu` returns the server's CPU seconds so far.
LoadResult RunLoad(const Load& load, const std::function<double()>& server_cpu);

// The key of that number, as a Load of such keys makes it.
std::string LoadKey(uint64_t number, size_t key_size);

// Whether a server on that port answers PING.
bool AnswersPing(uint16_t port);
// A port that nobody listens on.
uint16_t FreePort();

}  // namespace varve::bench
