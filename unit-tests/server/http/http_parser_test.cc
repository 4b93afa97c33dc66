// Heads of requests: what is taken, what is refused and with which status.
#include "server/http/http_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

using Result = HttpParse::Result;

int StatusOf(const std::string& head) {
  HttpRequest request;
  const HttpParse parsed = ParseHttpHead(head, &request);
  return parsed.result == Result::kRefused    ? parsed.status
         : parsed.result == Result::kComplete ? 200
                                              : 0;
}

std::string Get(const std::string& headers) { return "GET / HTTP/1.1\r\n" + headers + "\r\n"; }

TEST(HttpParserTest, TakesARequestApart) {
  const std::string head =
      "GET /readyz/log%5fwritable?verbose&exclude=a%20b HTTP/1.1\r\n"
      "hOsT: example.org:7778\r\nAccept: text/plain\r\naccept: */*;q=0.1\r\n"
      "Authorization: Basic abc=\r\n\r\n";
  HttpRequest request;
  const HttpParse parsed = ParseHttpHead(head + "GET /next", &request);
  ASSERT_EQ(parsed.result, Result::kComplete) << parsed.why;
  EXPECT_EQ(parsed.size, head.size());
  EXPECT_EQ(request.path, "/readyz/log_writable");
  ASSERT_EQ(request.query.size(), 2u);
  EXPECT_TRUE(request.Asks("verbose"));
  EXPECT_EQ(request.query[1].second, "a b");
  EXPECT_EQ(request.host, "example.org");
  EXPECT_EQ(request.accept, "text/plain,*/*;q=0.1");
  EXPECT_EQ(request.authorization, "Basic abc=");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_FALSE(request.head_only);
}

TEST(HttpParserTest, EveryPartOfAHeadIsIncomplete) {
  const std::string head = Get("Host: localhost\r\nConnection: close\r\n");
  for (size_t size = 0; size < head.size(); ++size)
    EXPECT_EQ(StatusOf(head.substr(0, size)), 0) << size;
  EXPECT_EQ(StatusOf(head), 200);
}

TEST(HttpParserTest, ConnectionsStayOpenAsTheVersionAndTheHeaderSay) {
  HttpRequest request;
  ParseHttpHead("GET / HTTP/1.0\r\n\r\n", &request);
  EXPECT_FALSE(request.keep_alive);
  ParseHttpHead(Get("Host: a\r\nConnection: foo, Close\r\n"), &request);
  EXPECT_FALSE(request.keep_alive);
  ParseHttpHead("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", &request);
  EXPECT_TRUE(request.keep_alive);
  EXPECT_TRUE(request.head_only);
}

TEST(HttpParserTest, RefusesWhatProxiesCouldReadDifferently) {
  for (const char* head :
       {"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n folded: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n", "GET http://a/ HTTP/1.1\r\n\r\n", "GET /#a HTTP/1.1\r\n\r\n",
        "GET /%zz HTTP/1.1\r\n\r\n", "GET /%00 HTTP/1.1\r\n\r\n", "GET /?a=%4 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", "\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "*1\r\n$4\r\nPING\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"}) {
    EXPECT_EQ(StatusOf(head), 400) << head;
  }
  EXPECT_EQ(StatusOf(Get("Host: a\r\nContent-Length: 0\r\n")), 200);
  EXPECT_EQ(StatusOf(Get("")), 400) << "version 1.1 names a host";
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 200);
}

TEST(HttpParserTest, SaysWhatItDoesNotServe) {
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\n\r\n"), 405);
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf(Get("Host: a\r\nExpect: 100-continue\r\n")), 501);
}

TEST(HttpParserTest, AHeadHas8KiBAtMost) {
  const std::string frame = Get("Host: a\r\nX: \r\n");
  const auto with = [&](size_t size) {
    return Get("Host: a\r\nX: " + std::string(size - frame.size(), 'a') + "\r\n");
  };
  EXPECT_EQ(StatusOf(with(kMaxHttpHead)), 200);
  EXPECT_EQ(StatusOf(with(kMaxHttpHead + 1)), 431);
  EXPECT_EQ(StatusOf("GET /" + std::string(100 << 10, 'a')), 431);
}

TEST(HttpParserTest, AcceptChoosesOpenMetricsByWeight) {
  EXPECT_TRUE(PrefersOpenMetrics(
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
      "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
  EXPECT_FALSE(PrefersOpenMetrics(""));
  EXPECT_FALSE(PrefersOpenMetrics("*/*"));
  EXPECT_FALSE(PrefersOpenMetrics("text/plain, application/openmetrics-text;q=0.5"));
  EXPECT_FALSE(PrefersOpenMetrics("application/openmetrics-text;q=0"));
  EXPECT_FALSE(PrefersOpenMetrics("application/openmetrics-text;q=nan"));
}

TEST(HttpParserTest, DecodesBase64) {
  std::string bytes;
  ASSERT_TRUE(DecodeBase64("ZGVmYXVsdDpwdw==", &bytes));
  EXPECT_EQ(bytes, "default:pw");
  ASSERT_TRUE(DecodeBase64("YWJj", &bytes));
  EXPECT_EQ(bytes, "abc");
  for (const char* text : {"", "a", "ab=c", "ab!=", "===="})
    EXPECT_FALSE(DecodeBase64(text, &bytes));
}

}  // namespace
}  // namespace varve
