// A bulk load writes keys in ascending order into an empty server, over one connection that always
// has many requests under way: by SET, or by INGEST, which Varve makes visible in one step.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>

namespace varve::bench {

struct BulkLoad {
  std::string server;  // for messages
  uint16_t port = 0;   // of 127.0.0.1
  bool by_ingest = false;
  uint64_t keys = 1'000'000;
  size_t value_size = 100;
};

// Returns the seconds until the last key is acknowledged and to be seen. Ends the program where it
// fails.
double RunBulkLoad(const BulkLoad& load);

}  // namespace varve::bench
