#include "db/hbase_rpc/server_pool.h"

namespace varve {

void ServerPool::Call(const std::string& address, const std::string& service,
                      std::string_view method, const google::protobuf::MessageLite& parameter,
                      ClientContext::Time deadline, RpcConnection::Done done) {
  std::shared_ptr<RpcConnection>& connection = connections_[Key(address, service)];
  if (connection == nullptr || connection->is_closed()) {
    connection = std::make_shared<RpcConnection>(context_, address, service);
    connection->Open();
  }
  connection->Call(method, parameter, deadline, std::move(done));
}

void ServerPool::CloseAll(const absl::Status& why) {
  const auto connections = std::move(connections_);
  connections_.clear();
  for (const auto& [key, connection] : connections) {
    connection->Close({HbaseFailure::Kind::kFinal, true, why});
  }
}

}  // namespace varve
