// Heads of HTTP requests: a head that is taken ends with its empty line and is taken again whatever
// follows it; no part of it is taken; what is refused stays refused.
//
//   input = the connection's bytes
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_parser.h"
#include "unit-tests/fuzz/fuzz_target.h"

namespace varve::fuzz {
namespace {

void RequireSane(const HttpRequest& request) {
  VARVE_FUZZ_REQUIRE(!request.path.empty());
  VARVE_FUZZ_REQUIRE(request.path.find('\0') == std::string::npos);
  VARVE_FUZZ_REQUIRE(request.has_host || request.host.empty());
  for (const std::string* const text : {&request.host, &request.accept, &request.authorization})
    VARVE_FUZZ_REQUIRE(text->find_first_of("\r\n") == std::string::npos);
}

void Run(std::string_view bytes) {
  const ExactCopy input(bytes);
  HttpRequest request;
  const HttpParse parsed = ParseHttpHead(input.view(), &request);
  if (parsed.result == HttpParse::Result::kIncomplete) {
    VARVE_FUZZ_REQUIRE(input.size() < kMaxHttpHead);
    return;
  }
  if (parsed.result == HttpParse::Result::kRefused) {
    VARVE_FUZZ_REQUIRE(parsed.status >= 400 && parsed.status < 600 && !parsed.why.empty());
    HttpRequest again;
    const HttpParse more = ParseHttpHead(std::string(input.view()) + "x", &again);
    VARVE_FUZZ_REQUIRE(more.result == HttpParse::Result::kRefused);
    return;
  }
  VARVE_FUZZ_REQUIRE(parsed.size <= input.size() && parsed.size <= kMaxHttpHead);
  const std::string_view head = input.view().substr(0, parsed.size);
  VARVE_FUZZ_REQUIRE(head.ends_with("\r\n\r\n"));
  RequireSane(request);
  HttpRequest again;
  const ExactCopy alone(head);
  VARVE_FUZZ_REQUIRE(ParseHttpHead(alone.view(), &again).size == parsed.size);
  VARVE_FUZZ_REQUIRE(again.path == request.path && again.query == request.query);
  const HttpParse part = ParseHttpHead(head.substr(0, head.size() - 1), &again);
  VARVE_FUZZ_REQUIRE(part.result == HttpParse::Result::kIncomplete);
  (void)PrefersOpenMetrics(request.accept);
  std::string decoded;
  if (DecodeBase64(request.authorization, &decoded))
    VARVE_FUZZ_REQUIRE(decoded.size() <= request.authorization.size() / 4 * 3);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "GET /readyz?verbose&exclude=disk%5fspace HTTP/1.1\r\nHost: [::1]:7778\r\n\r\nGET /",
      "HEAD /metrics HTTP/1.0\r\nAccept: "
      "application/openmetrics-text;q=0.5,text/plain;q=0.1\r\n\r\n",
      "GET /status.json HTTP/1.1\r\nHost: a\r\nAuthorization: ZGVmYXVsdDpwdw==\r\n"
      "Connection: keep-alive, close\r\nContent-Length: 0\r\n\r\n",
      "GET /status.json?series=4711 HTTP/1.1\r\nHost: 127.0.0.1:7778\r\n\r\n",
      "GET /status.json?series=%31&series=&=&& HTTP/1.1\r\nHost: a\r\n\r\n",
      "POST / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\nHost: a\n\n",
      "GET /%zz HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
  seeds.push_back("GET /" + std::string(kMaxHttpHead, 'a'));
  return seeds;
}

const Announced kTarget({"http_request", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
