#include "db/hbase_rpc/cluster_registry.h"

#include <Registry.pb.h>
#include <ZooKeeper.pb.h>
#include <fmt/format.h>

#include <utility>

#include "db/hbase_rpc/zookeeper_lookup.h"

namespace varve {
namespace {

using Server = absl::StatusOr<std::string>;

Server AddressOf(const hbase::pb::ServerName& name) {
  if (name.host_name().empty() || name.port() == 0 || name.port() > 0xffff) {
    return absl::UnavailableError("HBase names a server without a host or a port");
  }
  return fmt::format("{}:{}", name.host_name(), name.port());
}

Server NotOpenYet(std::string_view what) {
  return absl::FailedPreconditionError(fmt::format("HBase has no {} at the moment", what));
}

// Joins what two masters have said, neither of which tells where the server is. One that knows of
// none at the moment knows more than one that does not answer.
absl::Status Together(const absl::Status& before, const absl::Status& next) {
  if (before.ok()) return next;
  if (absl::IsFailedPrecondition(before)) return before;
  if (absl::IsFailedPrecondition(next)) return next;
  return absl::UnavailableError(
      fmt::format("{}, {}", std::string(before.message()), std::string(next.message())));
}

Server MetaOfNode(const std::string& message) {
  hbase::pb::MetaRegionServer meta;
  if (!meta.ParseFromString(message)) return absl::DataLossError("a damaged node of HBase");
  if (meta.has_state() && meta.state() != hbase::pb::RegionState::OPEN) {
    return NotOpenYet("server of hbase:meta");
  }
  return AddressOf(meta.server());
}

Server MasterOfNode(const std::string& message) {
  hbase::pb::Master master;
  if (!master.ParseFromString(message)) return absl::DataLossError("a damaged node of HBase");
  return AddressOf(master.master());
}

Server MetaOfAnswer(std::string_view message) {
  hbase::pb::GetMetaRegionLocationsResponse response;
  if (!response.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return absl::DataLossError("an answer that cannot be read");
  }
  for (const auto& location : response.meta_locations()) {
    if (location.region_info().replica_id() == 0 && location.has_server_name()) {
      return AddressOf(location.server_name());
    }
  }
  return NotOpenYet("server of hbase:meta");
}

Server MasterOfAnswer(std::string_view message) {
  hbase::pb::GetActiveMasterResponse response;
  if (!response.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return absl::DataLossError("an answer that cannot be read");
  }
  return response.has_server_name() ? AddressOf(response.server_name())
                                    : NotOpenYet("active master");
}

}  // namespace

void ClusterRegistry::FindMeta(Done done, ClientContext::Time deadline) {
  if (!meta_.empty()) return done(meta_);
  Ask(for_meta_, std::move(done), deadline);
}

void ClusterRegistry::FindMaster(Done done) {
  Ask(for_master_, std::move(done), ClientContext::Time::max());
}

void ClusterRegistry::Ask(Question& question, Done done, ClientContext::Time deadline) {
  question.waiting.push_back(std::move(done));
  if (question.waiting.size() > 1) return;
  question.deadline = deadline;
  if (are_masters_) return AskMaster(question, 0, absl::OkStatus());
  const std::string path = fmt::format("{}/{}", context_.options.znode_parent, question.node);
  LookUpZookeeper(context_, hosts_, path, deadline, [this, &question](const Server& data) {
    Server message = data.ok() ? HbaseMessageOf(*data) : data;
    if (message.ok())
      message = &question == &for_meta_ ? MetaOfNode(*message) : MasterOfNode(*message);
    Answer(question, message);
  });
}

void ClusterRegistry::AskMaster(Question& question, size_t index, const absl::Status& why) {
  if (index == hosts_.size()) {
    if (absl::IsFailedPrecondition(why)) return Answer(question, why);
    return Answer(question, absl::UnavailableError(fmt::format(
                                "no master of HBase answers ({}); do the names and ports of "
                                "--hbase-masters stand for a cluster that runs?",
                                std::string(why.message()))));
  }
  const auto answered = [this, &question, index, why](const RpcResult& result) {
    if (result.failure.has_value()) {
      const absl::Status failed = absl::UnavailableError(result.failure->status.message());
      return AskMaster(question, index + 1, Together(why, failed));
    }
    const Server server =
        &question == &for_meta_ ? MetaOfAnswer(result.message) : MasterOfAnswer(result.message);
    if (server.ok()) return Answer(question, server);
    AskMaster(question, index + 1, Together(why, server.status()));
  };
  const ClientContext::Time end = context_.HostEnd(question.deadline, hosts_.size() - index);
  const hbase::pb::GetMetaRegionLocationsRequest nothing;
  servers_.Call(hosts_[index], kRegistryService, question.method, nothing, end, answered);
}

void ClusterRegistry::Answer(Question& question, const Server& server) {
  if (&question == &for_meta_ && server.ok()) meta_ = *server;
  const auto waiting = std::move(question.waiting);
  question.waiting.clear();
  for (const Done& done : waiting) done(server);
}

}  // namespace varve
