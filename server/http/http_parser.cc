#include "server/http/http_parser.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "util/base/assert.h"

namespace varve {
namespace {

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

bool Is(std::string_view text, std::string_view word) {
  return absl::EqualsIgnoreCase(Absl(text), Absl(word));
}

// What a method or a header's name consists of.
bool IsToken(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Cuts the text before the first `mark` off `*rest`, and the mark with it.
std::string_view CutAt(char mark, std::string_view* rest) {
  const size_t end = rest->find(mark);
  const std::string_view piece = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return piece;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Decodes %XX; nothing for a bad one, and for a zero byte.
std::optional<std::string> DecodePercent(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    char byte = text[i];
    if (byte == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      byte = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (byte == '\0') return std::nullopt;
    decoded += byte;
  }
  return decoded;
}

HttpParse Refused(int status, std::string_view why) {
  VARVE_ASSERT(status >= 400 && !why.empty());
  return {.result = HttpParse::Result::kRefused, .status = status, .why = why};
}

// An empty `why`: it is fine.
HttpParse Fine() { return {}; }

HttpParse ParseTarget(std::string_view target, HttpRequest* request) {
  if (!target.starts_with('/')) return Refused(400, "The target of a request begins with a slash.");
  const bool printable = std::all_of(target.begin(), target.end(),
                                     [](char c) { return c > ' ' && c < '\x7f' && c != '#'; });
  if (!printable) return Refused(400, "The target of the request has bytes that none may have.");
  std::string_view rest = target;
  const std::optional<std::string> path = DecodePercent(CutAt('?', &rest));
  if (!path.has_value()) return Refused(400, "The path has a percent sign without two digits.");
  request->path = *path;
  while (!rest.empty()) {
    std::string_view pair = CutAt('&', &rest);
    const std::optional<std::string> name = DecodePercent(CutAt('=', &pair));
    const std::optional<std::string> value = DecodePercent(pair);
    if (!name.has_value() || !value.has_value())
      return Refused(400, "The query has a percent sign without two digits.");
    request->query.emplace_back(*name, *value);
  }
  return Fine();
}

HttpParse ParseRequestLine(std::string_view line, HttpRequest* request) {
  std::string_view rest = line;
  const std::string_view method = CutAt(' ', &rest);
  const std::string_view target = CutAt(' ', &rest);
  if (!IsToken(method) || target.empty() || rest.find(' ') != std::string_view::npos)
    return Refused(400, "The first line is no HTTP request.");
  if (rest != "HTTP/1.1" && rest != "HTTP/1.0") {
    return rest.starts_with("HTTP/") ? Refused(505, "This server speaks HTTP 1.0 and 1.1.")
                                     : Refused(400, "The first line is no HTTP request.");
  }
  if (method != "GET" && method != "HEAD") return Refused(405, "Only GET and HEAD are served.");
  request->head_only = method == "HEAD";
  request->keep_alive = rest == "HTTP/1.1";
  return ParseTarget(target, request);
}

// The host without its port; false: the value is none.
bool ParseHost(std::string_view value, std::string* host) {
  size_t end = value.find(':');
  if (value.starts_with('[')) {
    end = value.find(']');
    if (end == std::string_view::npos) return false;
    ++end;
  }
  *host = value.substr(0, end);
  if (end >= value.size()) return !host->empty();
  const std::string_view port = value.substr(end + 1);
  return !host->empty() && value[end] == ':' && port.size() <= 5 &&
         port.find_first_not_of("0123456789") == std::string_view::npos;
}

void ParseConnection(std::string_view value, HttpRequest* request) {
  while (!value.empty()) {
    const std::string_view word = Trim(CutAt(',', &value));
    if (Is(word, "close")) request->keep_alive = false;
  }
}

HttpParse ParseHeader(std::string_view line, HttpRequest* request) {
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !IsToken(name))
    return Refused(400, "A header line has no name before a colon.");
  const std::string_view value = Trim(line.substr(colon + 1));
  const bool printable = std::all_of(value.begin(), value.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
  });
  if (!printable) return Refused(400, "A header has bytes that none may have.");
  if (Is(name, "Host")) {
    if (request->has_host || !ParseHost(value, &request->host))
      return Refused(400, "A request names one host.");
    request->has_host = true;
  } else if (Is(name, "Connection")) {
    ParseConnection(value, request);
  } else if (Is(name, "Accept")) {
    request->accept += request->accept.empty() ? "" : ",";
    request->accept += value;
  } else if (Is(name, "Authorization")) {
    if (!request->authorization.empty()) return Refused(400, "A request is authorized once.");
    request->authorization = value;
  } else if (Is(name, "Last-Event-ID")) {
    request->last_event_id = value;
  } else if (Is(name, "Transfer-Encoding") || (Is(name, "Content-Length") && value != "0")) {
    return Refused(400, "Requests with a body are not served.");
  } else if (Is(name, "Expect")) {
    return Refused(501, "Requests that expect something are not served.");
  }
  return Fine();
}

// Returns whether the lines end with a carriage return and a line feed each, and neither byte
// stands elsewhere.
bool HasCleanLines(std::string_view head) {
  for (size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '\n' && (i == 0 || head[i - 1] != '\r')) return false;
    if (head[i] == '\r' && i + 1 < head.size() && head[i + 1] != '\n') return false;
    if (head[i] == '\0') return false;
  }
  return true;
}

HttpParse ParseLines(std::string_view head, HttpRequest* request) {
  size_t begin = 0;
  bool needs_host = false;  // version 1.1 does
  for (bool first = true;; first = false) {
    const size_t end = head.find("\r\n", begin);
    VARVE_ASSERT(end != std::string_view::npos);
    const std::string_view line = head.substr(begin, end - begin);
    begin = end + 2;
    if (!first && line.empty()) break;
    const HttpParse parsed = first ? ParseRequestLine(line, request) : ParseHeader(line, request);
    if (parsed.result == HttpParse::Result::kRefused) return parsed;
    if (first) needs_host = request->keep_alive;
  }
  VARVE_ASSERT(begin == head.size());
  if (needs_host && !request->has_host) return Refused(400, "A request names one host.");
  return {.result = HttpParse::Result::kComplete, .size = begin};
}

// The greatest weight, in thousandths, that `accept` gives to the media type; 0: none.
int WeightOf(std::string_view accept, std::string_view type) {
  int best = 0;
  while (!accept.empty()) {
    std::string_view range = CutAt(',', &accept);
    if (!Is(Trim(CutAt(';', &range)), type)) continue;
    double weight = 1;
    while (!range.empty()) {
      std::string_view parameter = CutAt(';', &range);
      if (!Is(Trim(CutAt('=', &parameter)), "q")) continue;
      if (!absl::SimpleAtod(Absl(Trim(parameter)), &weight) || !(weight >= 0 && weight <= 1))
        weight = 0;
    }
    best = std::max(best, static_cast<int>(weight * 1000));
  }
  return best;
}

}  // namespace

bool HttpRequest::Asks(std::string_view name) const {
  return std::any_of(query.begin(), query.end(),
                     [name](const auto& pair) { return pair.first == name; });
}

HttpParse ParseHttpHead(std::string_view bytes, HttpRequest* request) {
  *request = HttpRequest();
  const std::string_view most = bytes.substr(0, kMaxHttpHead);
  const size_t end = most.find("\r\n\r\n");
  const std::string_view head = most.substr(0, end == std::string_view::npos ? end : end + 4);
  if (!HasCleanLines(head))
    return Refused(400, "Lines end with a carriage return and a line feed.");
  if (end != std::string_view::npos) return ParseLines(head, request);
  if (most.size() == kMaxHttpHead)
    return Refused(431, "The head of a request has at most 8192 bytes.");
  return {};
}

bool PrefersOpenMetrics(std::string_view accept) {
  const int open = WeightOf(accept, "application/openmetrics-text");
  return open > 0 && open >= WeightOf(accept, "text/plain");
}

bool DecodeBase64(std::string_view text, std::string* bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  bytes->clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() - padding; ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    // Of each four digits the second to fourth complete a byte.
    if (i % 4 != 0) *bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)));
  }
  return true;
}

}  // namespace varve
