// The server measurements provide what each row of the server's table needs (running servers with
// all keys, little memory, silent connections), run its load, and turn the outcome into figures:
//
//   requests_per_second              answered; of an open row those that were answered in time
//   offered_per_second               open rows: requests that were due
//   p50_us p99_us p999_us            exchange.h, load_generator.h; redis-benchmark knows no p99.9
//   server_cpu_us                    processor time of the server's process for each request, all
//                                    threads
//   client_busy                      share of a processor that a thread of the load generator took;
//                                    near 1 it may be the limit
//   resident_bytes                   memory of the server's process (RSS), pages of mapped files
//                                    included
//   resident_loaded_bytes            the same before the reads of memory/keys
//   bytes_per_connection
//   changes_per_second keys_per_second
//   lag_us                           the median time from the writer's reply to the change at the
//                                    reader; lag_p99_us
//   set_rate_before set_rate_beside  memory/stalled_reader: SETs a second, in pipelines of 16,
//                                    without the readers and beside them
//   listing_us                       the median time of a listing; listing_requests says how many
//                                    requests one took
//   disk_reads                       cold rows: reads that the disk served meanwhile for each
//                                    request, for all processes
//
// Servers of the same durability and value size are kept from row to row, all but the measured one
// paused.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/process_use.h"
#include "benchmark/report.h"
#include "benchmark/server/contenders.h"
#include "benchmark/server/server_rows.h"
#include "client/tls_stream.h"

namespace varve::bench {

struct MeasureSettings {
  std::string directory;  // for all data
  double seconds = 2;
  double rest_seconds = kRestSeconds;
  bool redis_benchmark = false;
  bool oversubscribe = false;  // scaling rows of more loops than there are processors, too
  std::map<std::string, std::vector<std::string>> flags;  // further ones, by contender
  std::vector<Contender> contenders;                      // those that take part
  // Of all servers, and the connections of rows with TLS; both or none.
  std::optional<CertificateFiles> certificate;
  std::optional<ClientTlsContext> tls;
};

class ServerMeasurements {
 public:
  explicit ServerMeasurements(MeasureSettings settings) : settings_(std::move(settings)) {}

  // Returns the figures; nothing, and the reason in `*why`, if the row can't be run.
  std::optional<Figures> Measure(const ServerRow& row, const Contender& contender,
                                 std::string* why);

 private:
  // A server, how often each of its counters was incremented, and what was inserted.
  struct Loaded {
    std::unique_ptr<Server> server;
    std::vector<uint32_t> counters;
    uint64_t inserted = 0;  // keys beyond those that were loaded
  };

  std::unique_ptr<Server> NewServer(const ServerRow& row, const Contender& contender,
                                    const std::string& name, std::vector<std::string> flags = {});
  // Returns a paused server with all keys. Each key was read once, so that caches are as warm as
  // their size allows, and the server came to rest.
  Loaded* ServerFor(const ServerRow& row, const Contender& contender);
  // Sets or gets all keys in a shuffled order, and waits until the server is at rest.
  void EachKeyOnce(const ServerRow& row, Operation operation, Server* server);
  Load LoadOf(const ServerRow& row, const Server& server) const;
  std::optional<Figures> MeasureClosed(const ServerRow& row, const Contender& contender,
                                       std::string* why);
  std::optional<Figures> MeasureScaling(const ServerRow& row, const Contender& contender,
                                        std::string* why);
  Figures MeasureOpen(const ServerRow& row, const Contender& contender);
  std::optional<Figures> MeasureCold(const ServerRow& row, const Contender& contender,
                                     std::string* why);
  Figures MeasureKeysMemory(const ServerRow& row, const Contender& contender);
  std::optional<Figures> MeasureConnectionMemory(const ServerRow& row, const Contender& contender,
                                                 std::string* why);
  Figures MeasureListing(const ServerRow& row, const Contender& contender);
  Figures MeasureFeed(const ServerRow& row, const Contender& contender);
  Figures MeasureBulkLoad(const ServerRow& row, const Contender& contender);
  std::optional<Figures> MeasureStalledReaders(const ServerRow& row, const Contender& contender,
                                               std::string* why);
  // Returns the requests a second of the faster of Varve and Redis; measures them once for a row.
  double Capacity(const ServerRow& closed);

  const MeasureSettings settings_;
  std::string sync_;  // of servers_
  size_t value_size_ = 0;
  std::map<std::string, Loaded> servers_;                // by contender
  std::map<std::string, std::unique_ptr<Server>> cold_;  // filled and stopped
  std::map<std::string, double> capacities_;             // by closed row
};

}  // namespace varve::bench
