#include "client/bundle/http_get.h"

#include "absl/strings/escaping.h"
#include "client/socket.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kLongestAnswer = 8u << 20;

std::string Request(const ClientOptions& options, std::string_view path) {
  std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", path,
                                    options.host, options.port);
  if (!options.password.empty()) {
    const std::string login =
        fmt::format("{}:{}", options.user.empty() ? "default" : options.user, options.password);
    request += fmt::format("Authorization: Basic {}\r\n", absl::Base64Escape(login));
  }
  return request + "\r\n";
}

absl::Status SendAll(Socket& socket, std::string_view bytes, std::chrono::milliseconds timeout) {
  while (!bytes.empty()) {
    VARVE_ASSIGN_OR_RETURN(const size_t sent, socket.Send(bytes));
    bytes.remove_prefix(sent);
    if (sent == 0) VARVE_RETURN_IF_ERROR(socket.Wait(/*for_writing=*/true, timeout));
  }
  return absl::OkStatus();
}

// Returns everything up to the end of the stream.
absl::StatusOr<std::string> ReceiveAll(Socket& socket, std::chrono::milliseconds timeout) {
  std::string answer;
  char buffer[1 << 16];
  while (answer.size() < kLongestAnswer) {
    const absl::StatusOr<size_t> got = socket.Receive(buffer, sizeof(buffer));
    if (!got.ok()) return answer;
    answer.append(buffer, *got);
    if (*got == 0) VARVE_RETURN_IF_ERROR(socket.Wait(/*for_writing=*/false, timeout));
  }
  return absl::ResourceExhaustedError("the answer is longer than any page");
}

}  // namespace

absl::StatusOr<std::string> HttpGet(const ClientOptions& options, std::string_view path) {
  VARVE_ASSIGN_OR_RETURN(Socket socket, Socket::Connect(options));
  VARVE_RETURN_IF_ERROR(SendAll(socket, Request(options, path), options.timeout));
  VARVE_ASSIGN_OR_RETURN(const std::string answer, ReceiveAll(socket, options.timeout));
  const size_t head = answer.find("\r\n\r\n");
  constexpr std::string_view kFine = "HTTP/1.1 200 ";
  if (!answer.starts_with(kFine) || head == std::string::npos) {
    return absl::UnavailableError(
        fmt::format("{} is answered with \"{}\"", path, answer.substr(0, answer.find('\r'))));
  }
  return answer.substr(head + 4);
}

}  // namespace varve
