// ServerPool has one connection for each service of each server that is asked, makes it when it is
// first needed, and anew when it has broken.
//
// Thread-safety: The thread that runs the io_context alone uses an object.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "db/hbase_rpc/rpc_connection.h"

namespace varve {

class ServerPool {
 public:
  explicit ServerPool(ClientContext& context) : context_(context) {}
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  // Calls `service` of the server at `address`. `done` is never called inside of Call().
  void Call(const std::string& address, const std::string& service, std::string_view method,
            const google::protobuf::MessageLite& parameter, ClientContext::Time deadline,
            RpcConnection::Done done);
  // Ends all calls and refuses nothing: a later call connects anew.
  void CloseAll(const absl::Status& why);

 private:
  using Key = std::pair<std::string, std::string>;

  ClientContext& context_;
  std::map<Key, std::shared_ptr<RpcConnection>> connections_;
};

inline constexpr char kClientService[] = "ClientService";
inline constexpr char kMasterService[] = "MasterService";
inline constexpr char kRegistryService[] = "ClientMetaService";

}  // namespace varve
