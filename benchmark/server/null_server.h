// The null server shows the ceiling for any server on this machine: it parses RESP requests and
// answers at once, without storing anything. SET and MSET get +OK, GET one fixed value and MGET as
// many as it asks for, INCR 1, RANGE as many fixed entries as a load asks for (load.h), PING +PONG,
// all else an error. One thread, epoll.
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::bench {

// Serves 127.0.0.1:`port` until the process is killed.
[[noreturn]] void ServeNothing(uint16_t port, size_t value_size);

}  // namespace varve::bench
