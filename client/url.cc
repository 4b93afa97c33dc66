#include "client/url.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

template <typename... Arguments>
absl::Status Wrong(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  return absl::InvalidArgumentError("the URL of the server: " +
                                    fmt::format(format, std::forward<Arguments>(arguments)...));
}

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// `part` is what the text is, for the message: it may be a password, which no message shows.
absl::StatusOr<std::string> PercentDecoded(std::string_view text, std::string_view part) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::optional<int> high = i + 1 < text.size() ? HexDigit(text[i + 1]) : std::nullopt;
    const std::optional<int> low = i + 2 < text.size() ? HexDigit(text[i + 2]) : std::nullopt;
    if (!high || !low) return Wrong("a % in the {} needs two hexadecimal digits behind it", part);
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos) return Wrong("the {} has a zero byte", part);
  return decoded;
}

// The message does not show the text, which may be a password that lost its @.
absl::StatusOr<int> Number(std::string_view text, int most, std::string_view part) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > most)
    return Wrong("the {} is no number from 0 to {}", part, most);
  return number;
}

// Cuts the text at the first `mark` and returns what was before it; nothing if there is none.
std::optional<std::string_view> CutAt(size_t mark, std::string_view* text) {
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string_view before = text->substr(0, mark);
  text->remove_prefix(mark + 1);
  return before;
}

absl::Status SetCredentials(std::string_view text, ClientOptions* options) {
  options->user.clear();
  if (const auto user = CutAt(text.find(':'), &text)) {
    VARVE_ASSIGN_OR_RETURN(options->user, PercentDecoded(*user, "user"));
  }
  VARVE_ASSIGN_OR_RETURN(options->password, PercentDecoded(text, "password"));
  if (!options->user.empty() && options->password.empty())
    return Wrong("the user '{}' has no password", options->user);
  return absl::OkStatus();
}

absl::Status SetDatabase(std::string_view text, ClientOptions* options) {
  VARVE_ASSIGN_OR_RETURN(options->database, Number(text, INT32_MAX, "database"));
  options->namespace_name.clear();
  return absl::OkStatus();
}

absl::Status SetQuery(std::string_view query, ClientOptions* options) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view parameter = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (!parameter.starts_with("db="))
      return Wrong("the parameter '{}' is unknown; there is db=N", parameter);
    VARVE_RETURN_IF_ERROR(SetDatabase(parameter.substr(3), options));
  }
  return absl::OkStatus();
}

absl::Status SetHostAndPort(std::string_view text, ClientOptions* options) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return Wrong("the [ of an address has no ]");
    host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
    if (!port.empty() && port[0] != ':')
      return Wrong("':' and a port may follow ], not '{}'", port);
    if (host.empty()) return Wrong("[] has no address");
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
    if (port.find(':', 1) != std::string_view::npos)
      return Wrong("an IPv6 address stands in brackets: [{}]", text);
  }
  if (!host.empty()) {
    VARVE_ASSIGN_OR_RETURN(options->host, PercentDecoded(host, "host"));
  }
  if (port.size() > 1) {
    VARVE_ASSIGN_OR_RETURN(const int number, Number(port.substr(1), 65535, "port"));
    options->port = static_cast<uint16_t>(number);
  }
  return absl::OkStatus();
}

// Sets what stands behind "redis://".
absl::Status SetServer(std::string_view text, ClientOptions* options) {
  options->unix_socket.clear();
  std::string_view authority = text.substr(0, text.find('/'));
  const std::string_view database = text.substr(std::min(authority.size() + 1, text.size()));
  if (const auto credentials = CutAt(authority.rfind('@'), &authority))
    VARVE_RETURN_IF_ERROR(SetCredentials(*credentials, options));
  VARVE_RETURN_IF_ERROR(SetHostAndPort(authority, options));
  if (!database.empty()) VARVE_RETURN_IF_ERROR(SetDatabase(database, options));
  return absl::OkStatus();
}

// Sets what stands behind "unix://".
absl::Status SetUnixSocket(std::string_view text, ClientOptions* options) {
  const size_t slash = text.find('/');
  if (const auto credentials = CutAt(text.substr(0, slash).rfind('@'), &text))
    VARVE_RETURN_IF_ERROR(SetCredentials(*credentials, options));
  VARVE_ASSIGN_OR_RETURN(options->unix_socket, PercentDecoded(text, "path"));
  if (options->unix_socket.empty()) return Wrong("unix:// needs the path of a socket behind it");
  return absl::OkStatus();
}

absl::Status Apply(std::string_view url, ClientOptions* options) {
  const size_t colon = url.find("://");
  if (colon == std::string_view::npos)
    return Wrong("it has to begin with redis://, rediss:// or unix://");
  const std::string_view scheme = url.substr(0, colon);
  std::string_view rest = url.substr(colon + 3);
  const bool is_unix = scheme == "unix";
  if (!is_unix && scheme != "redis" && scheme != "rediss")
    return Wrong("'{}://' is unknown; there are redis://, rediss:// and unix://", scheme);
  // A path may have an @ of its own.
  const size_t end = rest.find_first_of(is_unix ? "?#" : "/?#");
  if (end != std::string_view::npos && rest.find('@', end) != std::string_view::npos)
    return Wrong("in a user or a password / is written as %2F, ? as %3F and # as %23");
  if (rest.find('#') != std::string_view::npos) return Wrong("it must have no #");
  options->tls.enabled = scheme == "rediss";
  const size_t question = rest.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  rest = rest.substr(0, question);
  VARVE_RETURN_IF_ERROR(is_unix ? SetUnixSocket(rest, options) : SetServer(rest, options));
  return SetQuery(query, options);
}

}  // namespace

absl::Status ApplyUrl(std::string_view url, ClientOptions* options) {
  ClientOptions changed = *options;
  VARVE_RETURN_IF_ERROR(Apply(url, &changed));
  *options = std::move(changed);
  return absl::OkStatus();
}

absl::StatusOr<ClientOptions> OptionsOfUrl(std::string_view url) {
  ClientOptions options;
  VARVE_RETURN_IF_ERROR(ApplyUrl(url, &options));
  return options;
}

}  // namespace varve
