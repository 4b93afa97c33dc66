// The frames of HBase's remote calls.
//
//   beginning  | "HBas" | version: 1 | authentication: 1 | size: 4 | ConnectionHeader |
//   request    | size: 4 | varint | RequestHeader | varint | parameter |
//   answer     | size: 4 | varint | ResponseHeader | varint | result | cells |
//
// Sizes are big-endian and count what follows them.
//
// Thread-safety: Free functions keep no state.
#pragma once

#include <RPC.pb.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

inline constexpr size_t kFrameSizeBytes = 4;

// Returns what a connection to one service (ClientService, MasterService) begins with.
std::string ConnectionPreamble(std::string_view service, std::string_view user);

// Appends a request.
void AppendRequest(uint32_t call_id, std::string_view method, uint32_t timeout_ms,
                   const google::protobuf::MessageLite& parameter, std::string* frames);

struct RpcResponse {
  hbase::pb::ResponseHeader header;
  // Views into the frame.
  std::string_view result;
  std::string_view cells;
};

// `frame` is what follows the size. Returns false where it is not an answer.
bool ParseResponse(std::string_view frame, RpcResponse* response);

}  // namespace varve
