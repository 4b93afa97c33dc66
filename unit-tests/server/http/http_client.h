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

}  // namespace varve::testing
