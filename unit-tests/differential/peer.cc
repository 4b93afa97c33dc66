#include "unit-tests/differential/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "fmt/format.h"
#include "util/resp/resp_reply.h"

namespace varve::differential {
namespace {

constexpr int kPatience = 60;  // seconds for a reply

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Somebody else may take it before it is used; then another one is tried.
uint16_t FreePort() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

bool Answers(uint16_t port) {
  const absl::StatusOr<std::unique_ptr<Peer>> peer = Peer::Connect("redis-server", port);
  const CommandLine ping = {"PING"};
  return peer.ok() && (*peer)->Send({&ping, 1}).ok() && (*peer)->Receive(1).ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> Peer::Connect(const std::string& name, uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const timeval patience{kPatience, 0};
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    ::close(descriptor);
    return absl::UnavailableError(fmt::format("{}: port {}: {}", name, port, std::strerror(error)));
  }
  return std::unique_ptr<Peer>(new Peer(name, descriptor));
}

Peer::~Peer() { ::close(descriptor_); }

absl::Status Peer::Send(absl::Span<const CommandLine> lines) {
  ByteBuffer out;
  for (const CommandLine& line : lines) {
    const std::vector<std::string_view> views(line.begin(), line.end());
    AppendRequest(views, &out);
  }
  while (!out.empty()) {
    const ssize_t sent = ::send(descriptor_, out.data(), out.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return absl::UnavailableError(
          fmt::format("{}: sending failed: {}", name_, std::strerror(errno)));
    out.Consume(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Peer::Receive(size_t replies) {
  std::vector<std::string> received;
  size_t used = 0;
  while (received.size() < replies) {
    Reply reply;
    size_t consumed = 0;
    const ReplyResult result = ParseReply(std::string_view(in_).substr(used), &reply, &consumed);
    if (result == ReplyResult::kError) {
      return absl::DataLossError(fmt::format("{}: no RESP: {}", name_, in_.substr(used, 100)));
    }
    if (result == ReplyResult::kReply) {
      received.push_back(in_.substr(used, consumed));
      used += consumed;
      continue;
    }
    char buffer[1 << 16];
    const ssize_t got = ::recv(descriptor_, buffer, sizeof(buffer), 0);
    if (got <= 0) {
      return absl::UnavailableError(
          fmt::format("{}: {}", name_, got == 0 ? "closed the connection" : std::strerror(errno)));
    }
    in_.append(buffer, static_cast<size_t>(got));
  }
  in_.erase(0, used);
  return received;
}

RedisServer StartRedis(const std::string& program, const std::string& directory,
                       const std::vector<std::string>& arguments) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    RedisServer server;
    server.port = FreePort();
    std::vector<std::string> all = {"--port",       std::to_string(server.port),
                                    "--bind",       "127.0.0.1",
                                    "--save",       "",
                                    "--appendonly", "no",
                                    "--dir",        directory};
    all.insert(all.end(), arguments.begin(), arguments.end());
    server.process = std::make_unique<testing::Process>(program, all, directory + "/redis.log");
    for (int tick = 0; tick < 2000 && server.process->Running(); ++tick) {
      if (Answers(server.port)) return server;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return {};
}

bool ProgramExists(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace varve::differential
