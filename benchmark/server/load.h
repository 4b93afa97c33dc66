// A load describes the requests that the load generator sends to a server; LoadResult is the
// outcome.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/tls_stream.h"

namespace varve::bench {

enum class Operation {
  kSet,
  kGet,
  kMultiSet,   // MSET of `keys_a_call`
  kMultiGet,   // MGET of `keys_a_call`
  kIncrement,  // INCR
  kRange,      // the kRangeEntries entries from a key on, in order
  kMixed,      // GET and SET in one pipeline
  kLateReads,  // GET, rather of keys that were inserted late, and SET of new keys
  kScans,      // as kRange, but of 1 to kMostScanned entries, and SET of new keys
  // GET, and GET together with a SET of the same key, which is one request here.
  kModify,
};

inline constexpr uint64_t kRangeEntries = 50;
inline constexpr uint64_t kMostScanned = 100;  // each length is drawn as often as the others

enum class KeyChoice {
  kUniform,
  kZipfian,   // as zipfian.h draws them; the frequent keys are spread over all keys
  kInOrder,   // each key once, whatever the times of the load
  kShuffled,  // the same in a shuffled order
};

struct Load {
  std::string server;                     // for messages
  uint16_t port = 0;                      // of 127.0.0.1
  std::string space;                      // Varve's namespace of all connections; empty: database 0
  const ClientTlsContext* tls = nullptr;  // of all connections; null: plain text
  Operation operation = Operation::kSet;
  uint64_t keys_a_call = 10;  // of kMultiSet and kMultiGet
  uint64_t get_percent = 50;  // of the operations behind kMixed
  int client_threads = 1;     // among which the connections are divided
  // The number of keys beyond `keys` that earlier loads inserted; of kLateReads and kScans.
  uint64_t inserted = 0;
  int connections = 50;
  int pipeline = 1;
  size_t value_size = 100;
  size_t key_size = 16;  // at least that
  uint64_t keys = 1'000'000;
  KeyChoice choice = KeyChoice::kUniform;
  uint64_t seed = 0;  // another one, other keys
  bool check_values = true;
  double warm_up_seconds = 0.3;
  double seconds = 2;
  // 0 makes a closed loop: each connection sends when it has its replies. Otherwise the loop is
  // open: so many requests a second are due, at equal distances, whatever the server does.
  double rate = 0;
  // The number of times that each key was incremented on this server so far. kIncrement updates it
  // and checks the replies by it; null: the replies are not checked.
  std::vector<uint32_t>* counters = nullptr;

  bool each_key_once() const {
    return choice == KeyChoice::kInOrder || choice == KeyChoice::kShuffled;
  }
};

struct LoadResult {
  uint64_t requests = 0;  // answered within `seconds`
  double seconds = 0;
  double server_cpu_seconds = 0;
  double client_cpu_seconds = 0;
  double p50 = 0;  // seconds
  double p99 = 0;
  double p999 = 0;
  uint64_t inserts = 0;  // of new keys, answered or not
};

}  // namespace varve::bench
