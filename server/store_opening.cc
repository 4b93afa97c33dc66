#include "server/store_opening.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#if defined(VARVE_HAS_HBASE)
#include "db/hbase/hbase_store.h"
#include "db/hbase_rpc/hbase_client.h"
#include "util/base/status.h"
#endif

namespace varve {

absl::StatusOr<std::unique_ptr<Store>> OpenHbaseStore(const ServerConfig& config) {
#if defined(VARVE_HAS_HBASE)
  HbaseOptions cluster;
  cluster.quorum = config.hbase.quorum;
  cluster.masters = config.hbase.masters;
  cluster.znode_parent = config.hbase.znode_parent;
  cluster.open_deadline = config.store_deadline;
  // Each I/O loop drives calls of its own, and the client's thread those of other threads. HBase
  // refuses more than ten requests for each handler of a server, of which it has 30 by default.
  // From 192 loops on, one for each of them is more.
  constexpr int kMostInFlight = 192;
  cluster.max_in_flight = static_cast<size_t>(std::max(kMostInFlight / (IoLoopsOf(config) + 1), 1));
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<HbaseClient> client, HbaseClient::Open(cluster));
  HbaseStoreOptions options;
  options.table = config.hbase.table;
  options.may_create = config.hbase.create;
  options.max_value_size = config.hbase.max_value_size;
  options.deadline = config.store_deadline;
  return HbaseStore::Open(std::move(client), options);
#else
  return absl::UnimplementedError(fmt::format(
      "store=hbase with table {}: this build of varve has no client of HBase; it takes protobuf "
      "and HBase's protocol at build time (docs/install.md)",
      config.hbase.table));
#endif
}

std::string StorePlace(const ServerConfig& config) {
  if (config.store == StoreKind::kEmbedded) return config.directory;
  const HbaseSettings& hbase = config.hbase;
  return fmt::format("table {} of the HBase cluster at {}", hbase.table,
                     hbase.quorum.empty() ? hbase.masters : hbase.quorum);
}

}  // namespace varve
