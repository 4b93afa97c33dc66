#include "client/console/text.h"

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "client/console/code_points.h"
#include "fmt/format.h"

namespace varve {

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string Escaped(std::string_view bytes, bool keep_lines, bool quoted) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const unsigned char c = static_cast<unsigned char>(bytes[0]);
    const size_t length = Utf8Length(bytes);
    const std::string_view sequence = bytes.substr(0, std::max<size_t>(length, 1));
    bytes.remove_prefix(sequence.size());
    if (keep_lines && (c == '\n' || c == '\t')) {
      text += sequence;
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\\' || (quoted && c == '"')) {
      text += {'\\', static_cast<char>(c)};
    } else if (length > 0 && !IsHidden(DecodeUtf8(sequence))) {
      text += sequence;
    } else {
      for (const char byte : sequence)
        text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return text;
}

size_t DisplayWidth(std::string_view utf8) {
  size_t width = 0;
  while (!utf8.empty()) {
    const size_t length = std::max<size_t>(Utf8Length(utf8), 1);
    width += ColumnsOf(DecodeUtf8(utf8.substr(0, length)));
    utf8.remove_prefix(length);
  }
  return width;
}

std::string Fitted(std::string_view utf8, size_t columns) {
  size_t width = 0;
  size_t kept = 0;  // bytes that leave room for the ellipsis
  for (size_t at = 0; at < utf8.size();) {
    const size_t length = std::max<size_t>(Utf8Length(utf8.substr(at)), 1);
    width += ColumnsOf(DecodeUtf8(utf8.substr(at, length)));
    if (width > columns) return fmt::format("{}…", utf8.substr(0, kept));
    at += length;
    if (width < columns) kept = at;
  }
  return std::string(utf8);
}

void AppendJsonString(std::string_view utf8, std::string* out) {
  *out += '"';
  for (const char c : utf8) {
    switch (c) {
      case '"':
        *out += "\\\"";
        break;
      case '\\':
        *out += "\\\\";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\r':
        *out += "\\r";
        break;
      case '\t':
        *out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          *out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          *out += c;
        }
    }
  }
  *out += '"';
}

void AppendJsonBytes(std::string_view bytes, std::string* out) {
  if (IsUtf8(bytes)) return AppendJsonString(bytes, out);
  std::string encoded;
  absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()), &encoded);
  *out += fmt::format("{{\"base64\":\"{}\"}}", encoded);
}

bool IsWord(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if ((word[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

std::string HumanBytes(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace varve
