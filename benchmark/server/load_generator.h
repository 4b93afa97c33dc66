// The load generator is a cheap client with many connections: one thread (or several, where a load
// asks for them), epoll, non-blocking sockets, and requests that it makes by rewriting the digits
// of a prepared buffer. On a small machine the client shares the processor with the server, so its
// cost distorts every figure.
//
// Closed loop: each connection sends `pipeline` requests at once and the next ones when all their
// replies are there, as redis-benchmark does. The latency of a request runs from that send to the
// receive call that brought its reply.
//
// Open loop: a pipeline is due at fixed times, whether or not earlier ones were answered. It goes
// to a connection that has nothing under way, or waits for one. Its latency runs from the time when
// it was due, so that a stall of the server counts for each request that had to wait. Requests that
// were due within `seconds` count, also if their replies came later; requests that were never sent
// count with the time that they waited.
//
// benchmark/server/exchange.h makes the requests and checks the replies.
//
// Thread-safety: one thread at a time calls these functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/server/exchange.h"
#include "benchmark/server/load.h"

namespace varve::bench {

// Runs the load, in as many threads as it says. `server_cpu`, which any of them calls, returns the
// server's processor time so far, in seconds.
LoadResult RunLoad(const Load& load, const std::function<double()>& server_cpu);

class LoadConnection;

// Idle connections: as many as the load says. Each sends one pipeline, gets its replies, and is
// silent from then on.
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

// Raises the limit on open files as far as this user may, and returns how many connections it
// allows.
int MostConnections();

// Returns whether a server on that port answers PING.
bool AnswersPing(uint16_t port);
// Returns a port on which no process listens.
uint16_t FreePort();

}  // namespace varve::bench
