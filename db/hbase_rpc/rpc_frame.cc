#include "db/hbase_rpc/rpc_frame.h"

#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr std::string_view kMagic = "HBas";
constexpr char kVersion = 0;
// Authentication `simple`: the server believes the name of the user.
constexpr char kSimpleAuthentication = 80;
constexpr std::string_view kCellCodec = "org.apache.hadoop.hbase.codec.KeyValueCodec";
// The version of HBase whose behavior the client expects.
constexpr uint32_t kVersionMajor = 2;
constexpr uint32_t kVersionMinor = 6;

void PutFrameSize(std::string* dst, size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) dst->push_back(static_cast<char>(value >> shift));
}

bool TakePrefixed(std::string_view* rest, std::string_view* bytes) {
  uint32_t size = 0;
  const char* const limit = rest->data() + rest->size();
  const char* const begin = DecodeVarint32(rest->data(), limit, &size);
  if (begin == nullptr || size > static_cast<size_t>(limit - begin)) return false;
  *bytes = std::string_view(begin, size);
  rest->remove_prefix(static_cast<size_t>(begin - rest->data()) + size);
  return true;
}

}  // namespace

std::string ConnectionPreamble(std::string_view service, std::string_view user) {
  hbase::pb::ConnectionHeader header;
  header.mutable_user_info()->set_effective_user(user.data(), user.size());
  header.set_service_name(service.data(), service.size());
  header.set_cell_block_codec_class(kCellCodec.data(), kCellCodec.size());
  hbase::pb::VersionInfo* version = header.mutable_version_info();
  version->set_version("2.6.4");
  version->set_url("");
  version->set_revision("");
  version->set_user("varve");
  version->set_date("");
  version->set_src_checksum("");
  version->set_version_major(kVersionMajor);
  version->set_version_minor(kVersionMinor);
  std::string bytes(kMagic);
  bytes.push_back(kVersion);
  bytes.push_back(kSimpleAuthentication);
  PutFrameSize(&bytes, header.ByteSizeLong());
  header.AppendToString(&bytes);
  return bytes;
}

void AppendRequest(uint32_t call_id, std::string_view method, uint32_t timeout_ms,
                   const google::protobuf::MessageLite& parameter, std::string* frames) {
  hbase::pb::RequestHeader header;
  header.set_call_id(call_id);
  header.set_method_name(method.data(), method.size());
  header.set_request_param(true);
  header.set_timeout(timeout_ms);
  const size_t header_size = header.ByteSizeLong();
  const size_t parameter_size = parameter.ByteSizeLong();
  const size_t size =
      VarintLength(header_size) + header_size + VarintLength(parameter_size) + parameter_size;
  const size_t before = frames->size();
  frames->reserve(before + kFrameSizeBytes + size);
  PutFrameSize(frames, size);
  PutVarint32(frames, static_cast<uint32_t>(header_size));
  header.AppendToString(frames);
  PutVarint32(frames, static_cast<uint32_t>(parameter_size));
  parameter.AppendToString(frames);
  VARVE_ASSERT(frames->size() == before + kFrameSizeBytes + size);
}

bool ParseResponse(std::string_view frame, RpcResponse* response) {
  std::string_view header;
  if (!TakePrefixed(&frame, &header)) return false;
  if (!response->header.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return false;
  }
  if (!response->header.has_call_id()) return false;
  response->result = {};
  response->cells = {};
  if (response->header.has_exception()) return true;
  if (!frame.empty() && !TakePrefixed(&frame, &response->result)) return false;
  response->cells = frame;
  return frame.size() == response->header.cell_block_meta().length();
}

}  // namespace varve
