#include "db/hbase_rpc/zookeeper_lookup.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "asio/connect.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/post.hpp"
#include "asio/read.hpp"
#include "asio/write.hpp"
#include "db/hbase_rpc/rpc_connection.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr uint32_t kSessionTimeoutMillis = 10'000;
constexpr uint32_t kPasswordSize = 16;
constexpr uint32_t kGetData = 4;
constexpr uint32_t kCloseSession = 0xffff'fff5;      // -11
constexpr uint32_t kNoNode = 0xffff'ff9b;            // -101
constexpr uint32_t kNoAuthentication = 0xffff'ff9a;  // -102
constexpr size_t kAnswerHeader = 16;
// A node of ZooKeeper holds at most a megabyte, unless it is told otherwise.
constexpr size_t kMaxAnswer = size_t{2} << 20;

void PutBigEndian32(std::string* dst, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) dst->push_back(static_cast<char>(value >> shift));
}

std::string WithSize(std::string_view request) {
  std::string bytes;
  PutBigEndian32(&bytes, static_cast<uint32_t>(request.size()));
  return bytes.append(request);
}

// One lookup under way. Each host gets a socket and a time of its own.
class Lookup : public std::enable_shared_from_this<Lookup> {
 public:
  Lookup(ClientContext& context, std::vector<std::string> hosts, std::string path,
         ClientContext::Time deadline, ZookeeperDone done)
      : context_(context),
        hosts_(std::move(hosts)),
        path_(std::move(path)),
        deadline_(deadline),
        done_(std::move(done)),
        resolver_(context.io),
        socket_(context.io) {}

  void AskNext() {
    if (next_ == hosts_.size()) {
      return End(absl::UnavailableError(
          fmt::format("no host of the ZooKeeper quorum answers ({}); do the names and ports of "
                      "--hbase-quorum stand for a cluster that runs?",
                      why_)));
    }
    const uint64_t turn = ++turn_;
    timer_ = context_.timers.At(
        context_.HostEnd(deadline_, hosts_.size() - next_),
        [self = shared_from_this(), turn] { self->Fail(turn, "no answer in time"); });
    const auto address = ParseServerAddress(hosts_[next_]);
    if (!address.ok()) return Fail(turn, "no address of a server");
    ResolveServer(
        *address, &resolver_,
        [self = shared_from_this(), turn](const asio::error_code& error, const auto& endpoints) {
          if (self->IsOver(turn, error)) return;
          self->Connect(turn, endpoints);
        });
  }

 private:
  void Connect(uint64_t turn, const asio::ip::tcp::resolver::results_type& endpoints) {
    asio::async_connect(socket_, endpoints,
                        [self = shared_from_this(), turn](const asio::error_code& error,
                                                          const asio::ip::tcp::endpoint&) {
                          if (self->IsOver(turn, error)) return;
                          self->Exchange(turn, ZookeeperSessionRequest(), [self, turn] {
                            self->Exchange(turn, ZookeeperGetRequest(self->path_),
                                           [self, turn] { self->TakeData(turn); });
                          });
                        });
  }

  // Sends a request and goes on once `answer_` holds the answer.
  void Exchange(uint64_t turn, std::string_view request, std::function<void()> then) {
    request_ = WithSize(request);
    asio::async_write(socket_, asio::buffer(request_),
                      [self = shared_from_this(), turn, then = std::move(then)](
                          const asio::error_code& error, size_t) {
                        if (self->IsOver(turn, error)) return;
                        self->ReadSize(turn, then);
                      });
  }

  void ReadSize(uint64_t turn, std::function<void()> then) {
    answer_.resize(kFrameSizeBytes);
    asio::async_read(socket_, asio::buffer(answer_),
                     [self = shared_from_this(), turn, then = std::move(then)](
                         const asio::error_code& error, size_t) {
                       if (self->IsOver(turn, error)) return;
                       const size_t size = DecodeBigEndian32(self->answer_.data());
                       if (size > kMaxAnswer) return self->Fail(turn, "no answer of ZooKeeper");
                       self->ReadAnswer(turn, size, then);
                     });
  }

  void ReadAnswer(uint64_t turn, size_t size, std::function<void()> then) {
    answer_.resize(size);
    asio::async_read(socket_, asio::buffer(answer_),
                     [self = shared_from_this(), turn, then = std::move(then)](
                         const asio::error_code& error, size_t) {
                       if (self->IsOver(turn, error)) return;
                       then();
                     });
  }

  void TakeData(uint64_t turn) {
    auto data = ParseZookeeperAnswer(answer_, path_);
    if (data.status().code() == absl::StatusCode::kDataLoss) {
      return Fail(turn, data.status().message());
    }
    std::string goodbye;
    PutBigEndian32(&goodbye, 0);
    PutBigEndian32(&goodbye, kCloseSession);
    asio::error_code ignored;
    socket_.write_some(asio::buffer(WithSize(goodbye)), ignored);
    End(std::move(data));
  }

  // Goes on to the next host after an error, and returns whether the turn of the handler's host is
  // over.
  bool IsOver(uint64_t turn, const asio::error_code& error) {
    if (turn == turn_ && error) Fail(turn, error.message());
    return turn != turn_;
  }

  void Fail(uint64_t turn, absl::string_view what) {
    if (turn != turn_) return;
    why_ += fmt::format("{}{}: {}", why_.empty() ? "" : ", ", hosts_[next_],
                        std::string_view(what.data(), what.size()));
    CloseSocket();
    ++next_;
    AskNext();
  }

  void End(absl::StatusOr<std::string> data) {
    CloseSocket();
    const ZookeeperDone done = std::move(done_);
    done(std::move(data));
  }

  void CloseSocket() {
    ++turn_;
    context_.timers.Cancel(timer_);
    resolver_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
  }

  ClientContext& context_;
  const std::vector<std::string> hosts_;
  const std::string path_;
  const ClientContext::Time deadline_;
  ZookeeperDone done_;
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  TimerQueue::Id timer_;
  size_t next_ = 0;
  // Changes when a host has had its turn, so that what comes late is told apart.
  uint64_t turn_ = 0;
  std::string request_;
  std::string answer_;
  std::string why_;  // the errors of the hosts so far
};

}  // namespace

void LookUpZookeeper(ClientContext& context, std::vector<std::string> hosts, std::string path,
                     ClientContext::Time deadline, ZookeeperDone done) {
  const auto lookup = std::make_shared<Lookup>(context, std::move(hosts), std::move(path), deadline,
                                               std::move(done));
  asio::post(context.io, [lookup] { lookup->AskNext(); });
}

std::string ZookeeperSessionRequest() {
  std::string request;
  PutBigEndian32(&request, 0);  // version of the protocol
  request.append(8, '\0');      // no change is known
  PutBigEndian32(&request, kSessionTimeoutMillis);
  request.append(8, '\0');  // a new session
  PutBigEndian32(&request, kPasswordSize);
  request.append(kPasswordSize, '\0');
  request.push_back(0);  // not for reading only
  return request;
}

std::string ZookeeperGetRequest(std::string_view path) {
  std::string request;
  PutBigEndian32(&request, 1);
  PutBigEndian32(&request, kGetData);
  PutBigEndian32(&request, static_cast<uint32_t>(path.size()));
  request.append(path);
  request.push_back(0);  // no watch
  return request;
}

absl::StatusOr<std::string> ParseZookeeperAnswer(std::string_view answer, std::string_view path) {
  if (answer.size() < kAnswerHeader) return absl::DataLossError("no answer of ZooKeeper");
  const uint32_t error = DecodeBigEndian32(answer.data() + 12);
  if (error == kNoNode) {
    return absl::NotFoundError(fmt::format(
        "ZooKeeper has no node {}: HBase is not up, or keeps its nodes below another parent "
        "(--hbase-znode-parent)",
        path));
  }
  if (error == kNoAuthentication) {
    return absl::PermissionDeniedError(
        fmt::format("ZooKeeper does not let the client read {}", path));
  }
  if (error != 0) {
    return absl::DataLossError(fmt::format("error {} of ZooKeeper", static_cast<int32_t>(error)));
  }
  answer.remove_prefix(kAnswerHeader);
  if (answer.size() < 4) return absl::DataLossError("no answer of ZooKeeper");
  const uint32_t size = DecodeBigEndian32(answer.data());
  answer.remove_prefix(4);
  if (size > answer.size()) return absl::DataLossError("no answer of ZooKeeper");
  return std::string(answer.substr(0, size));
}

absl::StatusOr<std::string> HbaseMessageOf(std::string_view node) {
  constexpr char kWrittenBy = '\xff';
  constexpr std::string_view kMessageMark = "PBUF";
  std::string_view rest = node;
  if (rest.size() > 5 && rest.front() == kWrittenBy) {
    const size_t size = DecodeBigEndian32(rest.data() + 1);
    rest.remove_prefix(5);
    rest.remove_prefix(std::min(size, rest.size()));
  }
  if (!rest.starts_with(kMessageMark)) {
    return absl::DataLossError("a node of ZooKeeper holds something else than what HBase writes");
  }
  return std::string(rest.substr(kMessageMark.size()));
}

absl::StatusOr<std::vector<std::string>> ParseServerList(std::string_view list,
                                                         std::string_view what) {
  std::vector<std::string> servers;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view server = list.substr(0, comma);
    const auto address = ParseServerAddress(server);
    if (!address.ok()) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: '{}' is no address: it takes host:port, and commas between several", what, server));
    }
    servers.emplace_back(server);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  if (servers.empty()) {
    return absl::InvalidArgumentError(fmt::format("{} is empty: it takes host:port", what));
  }
  return servers;
}

}  // namespace varve
