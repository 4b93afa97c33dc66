// A lookup of one node of ZooKeeper: connects to the hosts of the quorum in turn, until one tells
// what the node holds, and hangs up. It speaks as much of ZooKeeper's protocol as that takes:
//
//   session  | size: 4 | version: 4 | last change: 8 | timeout: 4 | session: 8 |
//            | size: 4 | password | for reading only: 1 |
//   getData  | size: 4 | request: 4 | type: 4 | size: 4 | path | watch: 1 |
//   answer   | size: 4 | request: 4 | change: 8 | error: 4 | size: 4 | data | figures |
//
// HBase's nodes hold | 0xff | size: 4 | who wrote it | "PBUF" | a message |.
//
// Thread-safety: The thread that runs the io_context alone uses it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/hbase_rpc/client_context.h"

namespace varve {

using ZookeeperDone = std::function<void(absl::StatusOr<std::string> data)>;

// `hosts` are host:port each. NotFound: there is no such node. Unavailable: no host has answered;
// they share the time until the deadline, of which each gets options.connect_timeout at most.
// `done` is called once, and not inside of this function.
void LookUpZookeeper(ClientContext& context, std::vector<std::string> hosts, std::string path,
                     ClientContext::Time deadline, ZookeeperDone done);

// Requests and answers, apart from their sizes.
std::string ZookeeperSessionRequest();
std::string ZookeeperGetRequest(std::string_view path);
// Returns what the answer to the request says of the node at `path`.
absl::StatusOr<std::string> ParseZookeeperAnswer(std::string_view answer, std::string_view path);

// The message inside what a node of HBase holds; DataLoss where there is none.
absl::StatusOr<std::string> HbaseMessageOf(std::string_view node);

// Splits host:port,host:port; InvalidArgument where it is no such list.
absl::StatusOr<std::vector<std::string>> ParseServerList(std::string_view list,
                                                         std::string_view what);

}  // namespace varve
