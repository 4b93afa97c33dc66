// A cheap client with many connections: one thread, epoll, plain non-blocking sockets, requests
// made by rewriting the digits of a prepared buffer. On a small machine the client shares the
// processor with the server, so what it costs distorts every figure.
//
// Closed loop: each connection sends `pipeline` requests at once and the next ones when all their
// replies are there, as redis-benchmark does. The latency of a request runs from that send to the
// receive call that brought its reply.
//
// Open loop: a pipeline is due every so often, whether or not those before it were answered. It
// goes to a connection that has nothing under way, or waits for one. Latencies run from when it was
// due, so that a server that stalls pays for everybody who had to wait. What was due within
// `seconds` counts, also where its reply came later; what was never sent counts with the time it
// waited.
//
// What is asked and how replies are checked: exchange.h. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/server/exchange.h"
#include "benchmark/server/load.h"

namespace varve::bench {

// `server_cpu` returns the server's CPU seconds so far.
LoadResult RunLoad(const Load& load, const std::function<double()>& server_cpu);

class LoadConnection;

// As many connections as the load says, each of which sent one pipeline and got its replies, and
// then says nothing.
class IdleConnections {
 public:
  explicit IdleConnections(const Load& load);
  ~IdleConnections();
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

 private:
  Exchange exchange_;
  const int epoll_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
};

// How many connections the limit on open files allows, once it is raised as far as this user may.
int MostConnections();

// Whether a server on that port answers PING.
bool AnswersPing(uint16_t port);
// A port that nobody listens on.
uint16_t FreePort();

}  // namespace varve::bench
