// A server in this process, on a free port and a directory of its own, and a raw connection to it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "server/server.h"
#include "unit-tests/testing/eager_picker.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve::testing {

class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, EngineOptions engine = SmallEngine())
      : options_(std::move(options)), engine_(std::move(engine)) {
    options_.port = 0;
    Start();
  }
  ~TestServer() { Stop(); }

  // Small buffers, so that flush and compaction happen in tests, too.
  static EngineOptions SmallEngine() {
    EngineOptions engine;
    engine.write_buffer_size = 256u << 10;
    engine.log_file_size = 1u << 20;
    engine.compaction_picker = std::make_shared<EagerPicker>();
    return engine;
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.File("data"), engine_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ServerConfig config{.engine = engine_, .server = options_};
    ServerProgram program = program_;
    if (!program.given) program.given = config;
    config.directory = data_directory();
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(store_.get(), config, program);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Stop() {
    if (server_ != nullptr) server_->Stop();
    server_.reset();
    if (store_ != nullptr) {
      const absl::Status closed = store_->Close();
      if (closes_cleanly_) {
        EXPECT_TRUE(closed.ok()) << closed;
      }
    }
    store_.reset();
  }
  void Restart() {
    Stop();
    Start();
  }

  // From the next Start() on.
  void UseProgram(ServerProgram program) { program_ = std::move(program); }

  // For tests that break the disk.
  void ExpectUncleanClose() { closes_cleanly_ = false; }

  std::string data_directory() const { return dir_.File("data"); }
  uint16_t port() const { return server_->port(); }
  uint16_t tls_port() const { return server_->tls_port(); }
  Server& server() { return *server_; }
  StorageEngine& store() { return *store_; }
  const ServerState& state() const { return server_->state(); }

  std::unique_ptr<Client> Connect() const {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect("127.0.0.1", port(), std::chrono::seconds(60));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

 private:
  TempDir dir_;
  ServerOptions options_;
  EngineOptions engine_;
  ServerProgram program_;
  bool closes_cleanly_ = true;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Server> server_;
};

// Bytes in, bytes out.
class RawConnection {
 public:
  // `from`: the address of its own that it uses; null: what the system chooses.
  explicit RawConnection(uint16_t port, int receive_buffer = 0, const char* host = "127.0.0.1",
                         const char* from = nullptr)
      : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    if (from != nullptr) {
      address.sin_family = AF_INET;
      EXPECT_EQ(::inet_pton(AF_INET, from, &address.sin_addr), 1);
      EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, host, &address.sin_addr), 1);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~RawConnection() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // As many bytes, fewer when the server closes or is silent for two minutes.
  std::string Receive(size_t size) {
    std::string bytes;
    while (bytes.size() < size) {
      if (!Wait()) break;
      char buffer[1 << 16];
      const ssize_t got =
          ::recv(descriptor_, buffer, std::min(sizeof(buffer), size - bytes.size()), 0);
      if (got <= 0) {
        closed_ = true;
        break;
      }
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return bytes;
  }
  // Everything until the server closes; closed() says whether it did.
  std::string ReceiveAll() { return Receive(SIZE_MAX); }
  bool closed() const { return closed_; }
  int descriptor() const { return descriptor_; }

  void FinishSending() { ::shutdown(descriptor_, SHUT_WR); }
  // Closes with a reset, as a client that dies.
  void Vanish() {
    const linger now{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  bool Wait() {
    pollfd waiting{descriptor_, POLLIN, 0};
    return ::poll(&waiting, 1, 120'000) == 1;
  }

  int descriptor_;
  bool closed_ = false;
};

// Whether the caller is the thread of a server's loop.
inline bool IsLoopsThread() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return std::string_view(name).starts_with("varve-io");
}

inline std::string Resp(const std::vector<std::string>& arguments) {
  std::string bytes = "*" + std::to_string(arguments.size()) + "\r\n";
  for (const std::string& argument : arguments) {
    bytes += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
  }
  return bytes;
}

}  // namespace varve::testing
