// A server of one connection that answers requests as a test tells it to: for replies that
// server_main does not give.
//
// Thread-safety: One thread at a time uses an object; a thread of its own serves.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace varve::testing {

class ScriptedServer {
 public:
  // Gets the words of a request with spaces between them. Returns the bytes of the reply.
  using Answer = std::function<std::string(const std::string& request)>;

  explicit ScriptedServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, generic, size) != 0 || listen(listener_, 1) != 0 ||
        getsockname(listener_, generic, &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  uint16_t port() const { return port_; }

 private:
  void Serve() {
    const int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    std::FILE* const stream = fdopen(connection, "r");
    std::string request;
    while (ReadRequest(stream, &request)) {
      const std::string reply = answer_(request);
      if (send(connection, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) break;
    }
    std::fclose(stream);
  }

  // Reads a line with a number. Returns false at the end of the stream.
  static bool ReadNumber(std::FILE* stream, const char* format, size_t* number) {
    return std::fscanf(stream, format, number) == 1 && std::fgetc(stream) == '\r' &&
           std::fgetc(stream) == '\n';
  }

  static bool ReadRequest(std::FILE* stream, std::string* request) {
    size_t words = 0;
    if (!ReadNumber(stream, "*%zu", &words)) return false;
    request->clear();
    for (size_t i = 0; i < words; ++i) {
      size_t size = 0;
      if (!ReadNumber(stream, "$%zu", &size)) return false;
      std::string word(size + 2, '\0');
      if (std::fread(word.data(), 1, word.size(), stream) != word.size()) return false;
      word.resize(size);
      *request += (i == 0 ? "" : " ") + word;
    }
    return true;
  }

  const Answer answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace varve::testing
