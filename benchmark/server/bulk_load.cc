#include "benchmark/server/bulk_load.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "benchmark/process.h"
#include "benchmark/server/exchange.h"
#include "benchmark/server/load_connection.h"
#include "client/client.h"

namespace varve::bench {
namespace {

constexpr size_t kKeyBytes = 16;
constexpr uint64_t kKeysARequest = 64;  // of INGEST ADD; as many SETs lie in one piece
constexpr uint64_t kPiecesUnderWay = 16;
constexpr std::string_view kOk = "+OK\r\n";

// Sends pieces of requests that are all answered by OK, and counts the answers.
class Sender {
 public:
  explicit Sender(const BulkLoad& load) : load_(load), fd_(ConnectTo(load.port)) {
    if (fd_ < 0) Fail(load_.server + " does not listen");
  }
  ~Sender() { close(fd_); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void Send(std::string_view piece) {
    while (!piece.empty()) {
      const ssize_t sent = send(fd_, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        piece.remove_prefix(static_cast<size_t>(sent));
      } else if (errno == EAGAIN) {
        Wait(POLLIN | POLLOUT);
        Receive();
      } else if (errno != EINTR) {
        Fail(load_.server + " closed the connection");
      }
    }
  }
  // Waits until no more than so many of the replies to `requests` are missing.
  void Await(uint64_t requests, uint64_t missing) {
    for (Receive(); answered_ + missing < requests; Receive()) Wait(POLLIN);
  }

 private:
  void Wait(int events) {
    pollfd waits{fd_, static_cast<int16_t>(events), 0};
    poll(&waits, 1, /*timeout=*/-1);
  }
  void Receive() {
    char buffer[16384];
    ssize_t received = 0;
    while ((received = recv(fd_, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
      for (const char byte : std::string_view(buffer, static_cast<size_t>(received))) {
        if (byte != kOk[at_]) Fail(load_.server + " does not answer OK");
        if (++at_ < kOk.size()) continue;
        at_ = 0;
        ++answered_;
      }
    }
    if (received == 0) Fail(load_.server + " closed the connection");
  }

  const BulkLoad& load_;
  const int fd_;
  size_t at_ = 0;  // in the reply that comes
  uint64_t answered_ = 0;
};

}  // namespace

double RunBulkLoad(const BulkLoad& load) {
  const auto client = Client::Connect("127.0.0.1", load.port);
  if (!client.ok()) Fail(client.status().ToString());
  const auto call = [&](std::vector<std::string_view> words) {
    const absl::StatusOr<Reply> reply = (*client)->Call(words);
    if (!reply.ok()) Fail(fmt::format("{}: {}", load.server, reply.status().ToString()));
    return *reply;
  };
  const auto begin = std::chrono::steady_clock::now();
  const std::string value = BulkString(std::string(load.value_size, 'v'));
  const std::string set = "*3\r\n" + BulkString("SET");
  Sender sender(load);
  if (load.by_ingest) call({"INGEST", "BEGIN", "load"});
  uint64_t requests = 0;
  std::string piece;
  for (uint64_t key = 0; key < load.keys;) {
    const uint64_t count = std::min(kKeysARequest, load.keys - key);
    piece.clear();
    if (load.by_ingest) {
      piece = fmt::format("*{}\r\n{}{}{}", 3 + 2 * count, BulkString("INGEST"), BulkString("ADD"),
                          BulkString("load"));
      ++requests;
    } else {
      requests += count;
    }
    for (const uint64_t end = key + count; key < end; ++key) {
      if (!load.by_ingest) piece += set;
      piece.append(BulkString(LoadKey(key, kKeyBytes))).append(value);
    }
    sender.Send(piece);
    sender.Await(requests, kPiecesUnderWay * (load.by_ingest ? 1 : kKeysARequest));
  }
  sender.Await(requests, 0);
  if (load.by_ingest) call({"INGEST", "COMMIT", "load"});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (call({"DBSIZE"}).integer != static_cast<int64_t>(load.keys))
    Fail(load.server + " has another number of keys than were loaded");
  return seconds;
}

}  // namespace varve::bench
