#include "server/statistics/server_statistics.h"

namespace varve {

void ServerStatistics::Reset() {
  for (std::atomic<uint64_t>* counter :
       {&connections_received, &connections_rejected, &connections_full, &protocol_errors,
        &failed_logins, &requests, &batches_inline, &batches_pooled, &bytes_in, &bytes_out}) {
    counter->store(0, std::memory_order_relaxed);
  }
  for (std::atomic<uint64_t>& denied : access_denied) denied.store(0, std::memory_order_relaxed);
  hits_before_reset = keyspace_hits.Sum();
  misses_before_reset = keyspace_misses.Sum();
  commands.Reset();
  errors.Reset();
}

}  // namespace varve
