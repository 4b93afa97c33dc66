// The parser of HTTP request heads: GET and HEAD without a body, in HTTP 1.0 and 1.1. It takes
// exactly what RFC 9112 allows and refuses the rest with the status that fits, so that no proxy in
// front can see other requests in the same bytes.
//
// Thread-safety: the functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve {

inline constexpr size_t kMaxHttpHead = 8u << 10;  // bytes, with the empty line

struct HttpRequest {
  bool head_only = false;   // HEAD
  bool keep_alive = false;  // the connection stays open for another request
  bool has_host = false;
  std::string path;                                        // decoded: "/readyz"
  std::vector<std::pair<std::string, std::string>> query;  // decoded: name and value, in order
  std::string host;           // of the header Host, without the port: "localhost", "[::1]"
  std::string accept;         // of the header Accept, all of them joined by commas
  std::string authorization;  // of the header Authorization
  std::string last_event_id;  // of the header Last-Event-ID

  // Returns whether the query has such a name, whatever its value.
  bool Asks(std::string_view name) const;
};

struct HttpParse {
  enum class Result { kIncomplete, kComplete, kRefused };

  Result result = Result::kIncomplete;
  size_t size = 0;       // of a complete head
  int status = 0;        // that refuses the request: 400, 405, 431, 501 or 505
  std::string_view why;  // a sentence for people
};

// Parses the head at the front of `bytes` into `*request`. Incomplete: more bytes are needed, which
// never holds for kMaxHttpHead bytes. Refused: the connection is of no further use.
HttpParse ParseHttpHead(std::string_view bytes, HttpRequest* request);

// Returns whether the request prefers OpenMetrics to plain text, by what its Accept says.
bool PrefersOpenMetrics(std::string_view accept);

// Decodes base64 with padding; false: the text is none.
bool DecodeBase64(std::string_view text, std::string* bytes);

}  // namespace varve
