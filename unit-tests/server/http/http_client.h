// A client of the HTTP listener: whole requests, their replies taken apart.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "unit-tests/server/test_server.h"

namespace varve::testing {

struct HttpAnswer {
  int status = 0;  // 0: the connection ended before a reply
  std::string head;
  std::string body;

  bool Has(std::string_view line) const { return head.find(line) != std::string::npos; }
};

// Takes the next reply off the connection.
inline HttpAnswer ReceiveAnswer(RawConnection& connection, bool has_body = true) {
  HttpAnswer answer;
  while (!answer.head.ends_with("\r\n\r\n")) {
    const std::string byte = connection.Receive(1);
    if (byte.empty()) return {};
    answer.head += byte;
  }
  answer.status = std::atoi(answer.head.c_str() + std::string_view("HTTP/1.1 ").size());
  const std::string_view name = "Content-Length: ";
  const size_t at = answer.head.find(name);
  if (at != std::string::npos && has_body)
    answer.body =
        connection.Receive(static_cast<size_t>(std::atoi(answer.head.c_str() + at + name.size())));
  return answer;
}

// Asks for a page on a connection of its own. `headers`: whole lines besides the host.
inline HttpAnswer Fetch(uint16_t port, const std::string& target, const std::string& headers = "",
                        const std::string& host = "127.0.0.1") {
  RawConnection connection(port, 0, "127.0.0.1");
  connection.Send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n");
  return ReceiveAnswer(connection);
}

// Asks any server in HTTP 1.0; returns all that comes until it closes. Empty: nobody listens.
inline std::string FetchSimply(uint16_t port, const std::string& target) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  std::string reply;
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET " + target + " HTTP/1.0\r\n\r\n";
    EXPECT_EQ(::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    char bytes[4096];
    for (ssize_t got; (got = ::recv(descriptor, bytes, sizeof(bytes), 0)) > 0;)
      reply.append(bytes, static_cast<size_t>(got));
  }
  ::close(descriptor);
  return reply;
}

}  // namespace varve::testing
