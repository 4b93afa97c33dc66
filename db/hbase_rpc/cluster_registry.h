// ClusterRegistry knows what a cluster of HBase tells to those who know none of its servers yet:
// which server has the table of regions (hbase:meta), and which master is the active one. It asks
// ZooKeeper, or the masters.
//
// Thread-safety: The thread that runs the io_context alone uses an object.
// Invariants: One question of a kind is under way at a time; callers that ask meanwhile get its
// answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/hbase_rpc/client_context.h"
#include "db/hbase_rpc/server_pool.h"

namespace varve {

class ClusterRegistry {
 public:
  // host:port of a server. FailedPrecondition: there is none at the moment.
  using Done = std::function<void(const absl::StatusOr<std::string>& server)>;

  // `hosts` are those of the quorum, or the masters where `are_masters`.
  ClusterRegistry(ClientContext& context, ServerPool& servers, std::vector<std::string> hosts,
                  bool are_masters)
      : context_(context), servers_(servers), hosts_(std::move(hosts)), are_masters_(are_masters) {}

  // The last answer is kept until it is found wrong, and is given at once. Hosts are asked until
  // `deadline`, or that of the caller whose question is under way.
  void FindMeta(Done done, ClientContext::Time deadline = ClientContext::Time::max());
  void ForgetMeta() { meta_.clear(); }
  void FindMaster(Done done);

 private:
  struct Question {
    std::string_view node;    // of ZooKeeper
    std::string_view method;  // of the masters
    std::vector<Done> waiting;
    ClientContext::Time deadline = ClientContext::Time::max();
  };

  void Ask(Question& question, Done done, ClientContext::Time deadline);
  // `why` is what the masters before this one have said, OK for the first one.
  void AskMaster(Question& question, size_t index, const absl::Status& why);
  void Answer(Question& question, const absl::StatusOr<std::string>& server);

  ClientContext& context_;
  ServerPool& servers_;
  const std::vector<std::string> hosts_;
  const bool are_masters_;
  std::string meta_;
  Question for_meta_{"meta-region-server", "GetMetaRegionLocations", {}};
  Question for_master_{"master", "GetActiveMaster", {}};
};

}  // namespace varve
