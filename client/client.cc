#include "client/client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fmt/format.h"
#include "util/resp_reply.h"

namespace varve {
namespace {

constexpr size_t kSendBytes = 256u << 10;  // requests kept back before they are sent on their own
constexpr size_t kReceiveBytes = 64u << 10;

void SetTimeout(int descriptor, std::chrono::milliseconds timeout) {
  timeval value{};
  value.tv_sec = timeout.count() / 1000;
  value.tv_usec = static_cast<suseconds_t>(timeout.count() % 1000 * 1000);
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value));
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof(value));  // connect() obeys it, too
}

absl::Status ErrorOf(const Reply& reply) {
  if (reply.text.starts_with("DATALOSS")) return absl::DataLossError(reply.text);
  return absl::FailedPreconditionError(reply.text);
}

absl::Status Unexpected(std::string_view command) {
  return absl::InternalError(fmt::format("the server's reply to {} has an unexpected type", command));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& host, uint16_t port,
                                                        std::chrono::milliseconds timeout) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), fmt::to_string(port).c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(fmt::format("{}: {}", host, ::gai_strerror(error)));
  }
  int last_error = 0;
  std::unique_ptr<Client> client;
  for (const addrinfo* address = found; address != nullptr && client == nullptr; address = address->ai_next) {
    const int descriptor = ::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (descriptor < 0) {
      last_error = errno;
      continue;
    }
    SetTimeout(descriptor, timeout);
    if (::connect(descriptor, address->ai_addr, address->ai_addrlen) != 0) {
      last_error = errno;
      ::close(descriptor);
      continue;
    }
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    client.reset(new Client(descriptor));
  }
  ::freeaddrinfo(found);
  if (client == nullptr) {
    return absl::UnavailableError(fmt::format("can't connect to {}:{}: {}", host, port, std::strerror(last_error)));
  }
  return client;
}

Client::~Client() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

absl::Status Client::Broken(std::string_view what) {
  const int error = errno;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (error == EAGAIN || error == EWOULDBLOCK) {
    return absl::DeadlineExceededError(fmt::format("{}: the server did not answer in time", what));
  }
  return absl::UnavailableError(error == 0 ? std::string(what) : fmt::format("{}: {}", what, std::strerror(error)));
}

absl::Status Client::Send(absl::Span<const std::string_view> arguments) {
  AppendRequest(arguments, &out_);
  return out_.size() >= kSendBytes ? Flush() : absl::OkStatus();
}

absl::Status Client::Flush() {
  while (!out_.empty()) {
    if (descriptor_ < 0) return absl::UnavailableError("the connection is closed");
    const ssize_t sent = ::send(descriptor_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Broken("send");
    out_.Consume(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::StatusOr<Reply> Client::Receive() {
  if (const absl::Status flushed = Flush(); !flushed.ok()) return flushed;
  Reply reply;
  size_t consumed = 0;
  while (true) {
    // What the server sends ends with a line end wherever it pauses; a long reply that doesn't is not parsed over and over.
    if (in_.size() >= wanted_ || in_.view().ends_with("\r\n")) {
      const ReplyResult result = ParseReply(in_.view(), &reply, &consumed);
      if (result == ReplyResult::kReply) {
        in_.Consume(consumed);
        wanted_ = 1;
        return reply;
      }
      errno = 0;
      if (result == ReplyResult::kError) return Broken("the server doesn't speak RESP");
      wanted_ = in_.size() * 2 + 1;
    }
    if (descriptor_ < 0) return absl::UnavailableError("the connection is closed");
    char* const room = in_.Reserve(kReceiveBytes);
    const ssize_t got = ::recv(descriptor_, room, kReceiveBytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Broken("receive");
    errno = 0;
    if (got == 0) return Broken("the server closed the connection");
    in_.Commit(static_cast<size_t>(got));
  }
}

absl::StatusOr<Reply> Client::Call(absl::Span<const std::string_view> arguments) {
  if (const absl::Status sent = Send(arguments); !sent.ok()) return sent;
  absl::StatusOr<Reply> reply = Receive();
  if (reply.ok() && reply->is_error()) return ErrorOf(*reply);
  return reply;
}

absl::Status Client::Ping() { return Call({"PING"}).status(); }

absl::Status Client::Put(std::string_view key, std::string_view value) { return Call({"SET", key, value}).status(); }

absl::Status Client::PutAll(absl::Span<const std::pair<std::string_view, std::string_view>> pairs) {
  if (pairs.empty()) return absl::OkStatus();
  std::vector<std::string_view> arguments = {"MSET"};
  for (const auto& [key, value] : pairs) {
    arguments.push_back(key);
    arguments.push_back(value);
  }
  return Call(arguments).status();
}

absl::StatusOr<std::optional<std::string>> Client::Get(std::string_view key) {
  absl::StatusOr<Reply> reply = Call({"GET", key});
  if (!reply.ok()) return reply.status();
  if (reply->is_null()) return std::optional<std::string>();
  if (reply->type != Reply::Type::kBulk) return Unexpected("GET");
  return std::optional<std::string>(std::move(reply->text));
}

absl::StatusOr<int64_t> Client::Delete(absl::Span<const std::string_view> keys) {
  if (keys.empty()) return int64_t{0};
  std::vector<std::string_view> arguments = {"DEL"};
  arguments.insert(arguments.end(), keys.begin(), keys.end());
  const absl::StatusOr<Reply> reply = Call(arguments);
  if (!reply.ok()) return reply.status();
  if (reply->type != Reply::Type::kInteger) return Unexpected("DEL");
  return reply->integer;
}

absl::StatusOr<Client::Pairs> Client::List(std::vector<std::string_view> arguments, const RangeQuery& query) {
  const std::string offset = fmt::to_string(query.offset);
  const std::string limit = fmt::to_string(query.limit);
  if (query.reverse) arguments.push_back("REV");
  if (query.offset != 0 || query.limit >= 0) arguments.insert(arguments.end(), {"LIMIT", offset, limit});
  if (query.keys_only) arguments.push_back("KEYS");
  absl::StatusOr<Reply> reply = Call(arguments);
  if (!reply.ok()) return reply.status();
  const size_t each = query.keys_only ? 1 : 2;
  if (reply->type != Reply::Type::kArray || reply->elements.size() % each != 0) return Unexpected(arguments[0]);
  Pairs pairs;
  pairs.reserve(reply->elements.size() / each);
  for (size_t i = 0; i < reply->elements.size(); i += each) {
    pairs.emplace_back(std::move(reply->elements[i].text),
                       query.keys_only ? std::string() : std::move(reply->elements[i + 1].text));
  }
  return pairs;
}

absl::StatusOr<Client::Pairs> Client::Range(std::string_view min, std::string_view max, const RangeQuery& query) {
  if (query.reverse) std::swap(min, max);
  return List({"RANGE", min, max}, query);
}

absl::StatusOr<Client::Pairs> Client::Prefix(std::string_view prefix, const RangeQuery& query) {
  return List({"PREFIX", prefix}, query);
}

absl::StatusOr<int64_t> Client::Count(std::string_view min, std::string_view max) {
  const absl::StatusOr<Reply> reply = Call({"COUNT", min, max});
  if (!reply.ok()) return reply.status();
  if (reply->type != Reply::Type::kInteger) return Unexpected("COUNT");
  return reply->integer;
}

}  // namespace varve
