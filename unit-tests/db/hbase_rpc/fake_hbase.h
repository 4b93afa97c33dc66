// FakeHbase listens as a ZooKeeper and as servers of HBase, whose answers a test decides on, so
// that it may fail in every way that a server can: by halves, with other words, or not at all.
//
// Thread-safety: The handler runs on a thread of each connection; everything else belongs to the
// thread of the test.
#pragma once

#include <Client.pb.h>
#include <HBase.pb.h>
#include <RPC.pb.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace varve::testing {

// One way to answer a request.
struct FakeAnswer {
  enum class Kind : uint8_t { kMessage, kException, kBytes, kSilence, kHangUp };

  Kind kind = Kind::kSilence;
  // The message, the class of the exception, or what is sent as it is.
  std::string bytes;

  static FakeAnswer Message(const google::protobuf::MessageLite& message) {
    return {Kind::kMessage, message.SerializeAsString()};
  }
  static FakeAnswer Exception(std::string class_name) {
    return {Kind::kException, std::move(class_name)};
  }
  static FakeAnswer Bytes(std::string bytes) { return {Kind::kBytes, std::move(bytes)}; }
  static FakeAnswer Silence() { return {}; }
  static FakeAnswer HangUp() { return {Kind::kHangUp, ""}; }
};

struct FakeRequest {
  size_t server;
  std::string method;
  std::string parameter;
};

class FakeHbase {
 public:
  using Handler = std::function<FakeAnswer(const FakeRequest& request)>;

  // Scans of hbase:meta are answered by regions(); the handler answers all else.
  FakeHbase(size_t servers, Handler handler);
  ~FakeHbase();
  FakeHbase(const FakeHbase&) = delete;
  FakeHbase& operator=(const FakeHbase&) = delete;

  std::string quorum() const { return AddressOf(ports_.front()); }
  std::string server(size_t index) const { return AddressOf(ports_[index + 1]); }
  hbase::pb::ServerName NameOf(size_t index) const;
  // Regions of the table `t`: where each begins, and its server; kNowhere: it is open on none.
  static constexpr size_t kNowhere = SIZE_MAX;
  void SetRegions(std::vector<std::pair<std::string, size_t>> regions);
  // Sets what ZooKeeper answers; by default, the first server has hbase:meta.
  void SetNode(std::string answer);
  // From now on servers of HBase refuse every new connection by an exception that belongs to no
  // call, as those of a cluster do that demands Kerberos.
  void RefuseConnections(const std::string& class_name, const std::string& why);
  size_t meta_scans() const { return meta_scans_; }

  static std::string Framed(std::string_view bytes);

 private:
  static std::string AddressOf(uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

  void Listen(size_t index);
  void Serve(size_t index, int socket);
  void ServeZookeeper(int socket);
  void ServeHbase(size_t index, int socket);
  FakeAnswer AnswerOf(const FakeRequest& request);
  hbase::pb::ScanResponse MetaAnswer(const hbase::pb::ScanRequest& scan);

  const Handler handler_;
  std::vector<int> listeners_;
  std::vector<uint16_t> ports_;
  std::mutex mutex_;
  std::list<int> sockets_;
  std::list<std::thread> threads_;
  std::vector<std::pair<std::string, size_t>> regions_;
  std::string node_;
  std::string refusal_;  // a frame; empty: connections are not refused
  std::atomic<size_t> meta_scans_ = 0;
  bool is_over_ = false;
};

}  // namespace varve::testing
