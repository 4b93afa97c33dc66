#include "unit-tests/db/hbase_rpc/fake_hbase.h"

#include <ZooKeeper.pb.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve::testing {
namespace {

// Reads `size` bytes; nullopt where the connection ends before.
std::optional<std::string> ReadBytes(int socket, size_t size) {
  std::string bytes(size, '\0');
  size_t read = 0;
  while (read < size) {
    const ssize_t got = ::recv(socket, bytes.data() + read, size - read, 0);
    if (got <= 0) return std::nullopt;
    read += static_cast<size_t>(got);
  }
  return bytes;
}

std::optional<std::string> ReadFrame(int socket) {
  const std::optional<std::string> size = ReadBytes(socket, 4);
  if (!size.has_value()) return std::nullopt;
  return ReadBytes(socket, DecodeBigEndian32(size->data()));
}

bool Send(int socket, std::string_view bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

void AddCell(std::string_view row, std::string_view qualifier, std::string_view value,
             hbase::pb::Result* result) {
  hbase::pb::Cell* cell = result->add_cell();
  cell->set_row(std::string(row));
  cell->set_family("info");
  cell->set_qualifier(std::string(qualifier));
  cell->set_value(std::string(value));
}

}  // namespace

FakeHbase::FakeHbase(size_t servers, Handler handler) : handler_(std::move(handler)) {
  for (size_t i = 0; i <= servers; ++i) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    VARVE_ASSERT(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
    VARVE_ASSERT(::listen(listener, 64) == 0);
    VARVE_ASSERT(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    listeners_.push_back(listener);
    ports_.push_back(ntohs(address.sin_port));
  }
  hbase::pb::MetaRegionServer meta;
  meta.mutable_server()->set_host_name("127.0.0.1");
  if (servers > 0) meta.mutable_server()->set_port(ports_[1]);
  const std::string data = "PBUF" + meta.SerializeAsString();
  node_ = std::string(16, '\0') + Framed(data) + std::string(68, '\0');
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i <= servers; ++i) threads_.emplace_back([this, i] { Listen(i); });
}

FakeHbase::~FakeHbase() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    for (const int socket : listeners_) ::shutdown(socket, SHUT_RDWR);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : listeners_) ::close(socket);
  for (const int socket : sockets_) ::close(socket);
}

void FakeHbase::SetRegions(std::vector<std::pair<std::string, size_t>> regions) {
  const std::lock_guard lock(mutex_);
  regions_ = std::move(regions);
}

void FakeHbase::SetNode(std::string answer) {
  const std::lock_guard lock(mutex_);
  node_ = std::move(answer);
}

hbase::pb::ServerName FakeHbase::NameOf(size_t index) const {
  hbase::pb::ServerName name;
  name.set_host_name("127.0.0.1");
  name.set_port(ports_[index + 1]);
  return name;
}

void FakeHbase::RefuseConnections(const std::string& class_name, const std::string& why) {
  constexpr uint32_t kNoCall = 0xffff'ffff;  // -1
  hbase::pb::ResponseHeader response;
  response.set_call_id(kNoCall);
  response.mutable_exception()->set_exception_class_name(class_name);
  response.mutable_exception()->set_stack_trace(why);
  response.mutable_exception()->set_do_not_retry(true);
  std::string bytes;
  PutLengthPrefixed(&bytes, response.SerializeAsString());
  const std::lock_guard lock(mutex_);
  refusal_ = Framed(bytes);
}

std::string FakeHbase::Framed(std::string_view bytes) {
  std::string framed;
  for (int shift = 24; shift >= 0; shift -= 8) {
    framed.push_back(static_cast<char>(bytes.size() >> shift));
  }
  return framed.append(bytes);
}

void FakeHbase::Listen(size_t index) {
  while (true) {
    const int socket = ::accept(listeners_[index], nullptr, nullptr);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    if (is_over_) return;
    threads_.emplace_back([this, index, socket] { Serve(index, socket); });
  }
}

void FakeHbase::Serve(size_t index, int socket) {
  index == 0 ? ServeZookeeper(socket) : ServeHbase(index - 1, socket);
  ::shutdown(socket, SHUT_RDWR);
}

void FakeHbase::ServeZookeeper(int socket) {
  if (!ReadFrame(socket).has_value() || !Send(socket, Framed(std::string(37, '\0')))) return;
  if (!ReadFrame(socket).has_value()) return;
  std::string node;
  {
    const std::lock_guard lock(mutex_);
    node = node_;
  }
  if (Send(socket, Framed(node))) ReadFrame(socket);
}

void FakeHbase::ServeHbase(size_t index, int socket) {
  if (!ReadBytes(socket, 6).has_value() || !ReadFrame(socket).has_value()) return;
  std::string refusal;
  {
    const std::lock_guard lock(mutex_);
    refusal = refusal_;
  }
  if (!refusal.empty()) {
    // The request is read first, as one that came to a closed socket could break the connection
    // before the client has read why it is refused.
    if (ReadFrame(socket).has_value()) Send(socket, refusal);
    return;
  }
  while (true) {
    const std::optional<std::string> frame = ReadFrame(socket);
    if (!frame.has_value()) return;
    ByteReader reader(*frame);
    std::string_view header_bytes;
    std::string_view parameter;
    hbase::pb::RequestHeader header;
    VARVE_ASSERT(reader.ReadLengthPrefixed(&header_bytes) && reader.ReadLengthPrefixed(&parameter));
    VARVE_ASSERT(header.ParseFromString(std::string(header_bytes)));
    const FakeAnswer answer = AnswerOf({index, header.method_name(), std::string(parameter)});
    hbase::pb::ResponseHeader response;
    response.set_call_id(header.call_id());
    std::string bytes;
    switch (answer.kind) {
      case FakeAnswer::Kind::kSilence:
        continue;
      case FakeAnswer::Kind::kHangUp:
        return;
      case FakeAnswer::Kind::kBytes:
        Send(socket, answer.bytes);
        return;
      case FakeAnswer::Kind::kException:
        response.mutable_exception()->set_exception_class_name(answer.bytes);
        response.mutable_exception()->set_stack_trace(answer.bytes + ": why\n at somewhere");
        PutLengthPrefixed(&bytes, response.SerializeAsString());
        break;
      case FakeAnswer::Kind::kMessage:
        PutLengthPrefixed(&bytes, response.SerializeAsString());
        PutLengthPrefixed(&bytes, answer.bytes);
        break;
    }
    if (!Send(socket, Framed(bytes))) return;
  }
}

FakeAnswer FakeHbase::AnswerOf(const FakeRequest& request) {
  hbase::pb::ScanRequest scan;
  if (request.method != "Scan" || !scan.ParseFromString(request.parameter))
    return handler_(request);
  if (scan.scan().start_row().size() > 32'767 || scan.scan().stop_row().size() > 32'767)
    return FakeAnswer::Exception("java.lang.IllegalArgumentException");
  if (scan.region().value() != "hbase:meta,,1") return handler_(request);
  ++meta_scans_;
  return FakeAnswer::Message(MetaAnswer(scan));
}

// Goes from the first row of the scan, `t,start,id`, against the order of starts and ids; `t` with
// something else behind it is the end of the table.
hbase::pb::ScanResponse FakeHbase::MetaAnswer(const hbase::pb::ScanRequest& scan) {
  const std::lock_guard lock(mutex_);
  const std::string& from = scan.scan().start_row();
  const size_t comma = from.find(',');
  const size_t id = from.rfind(',') + 1;
  hbase::pb::ScanResponse response;
  for (size_t i = regions_.size(); i-- > 0;) {
    const std::string hash = "1.hash.";
    const bool is_behind = comma != std::string::npos &&
                           std::pair(regions_[i].first, hash) >
                               std::pair(from.substr(comma + 1, id - comma - 2), from.substr(id));
    if (is_behind || static_cast<uint32_t>(response.results_size()) >= scan.number_of_rows())
      continue;
    const std::string row = "t," + regions_[i].first + "," + hash;
    hbase::pb::RegionInfo info;
    info.set_region_id(1);
    info.mutable_table_name()->set_namespace_("default");
    info.mutable_table_name()->set_qualifier("t");
    info.set_start_key(regions_[i].first);
    info.set_end_key(i + 1 < regions_.size() ? regions_[i + 1].first : "");
    hbase::pb::Result* result = response.add_results();
    AddCell(row, "regioninfo", "PBUF" + info.SerializeAsString(), result);
    if (regions_[i].second != kNowhere) AddCell(row, "server", server(regions_[i].second), result);
  }
  return response;
}

}  // namespace varve::testing
