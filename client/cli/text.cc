#include "client/cli/text.h"

#include <array>

#include "absl/strings/escaping.h"
#include "fmt/format.h"

namespace varve {
namespace {

// The length of the well-formed UTF-8 sequence at bytes[0]; 0 if there is none.
size_t Utf8Length(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto follows = [&](size_t i) { return i < bytes.size() && (at(i) & 0xC0) == 0x80; };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && at(1) < 0xA0) return 0;  // longer than it need be
    if (first == 0xED && at(1) > 0x9F) return 0;  // half of a surrogate pair
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if ((first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F)) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

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
    // C1 controls, U+0080 to U+009F, steer a terminal as well as those below the blank do.
    const bool is_c1 = length == 2 && c == 0xC2 && static_cast<unsigned char>(bytes[1]) < 0xA0;
    if ((length > 1 && !is_c1) || (keep_lines && (c == '\n' || c == '\t'))) {
      text.append(bytes.substr(0, std::max<size_t>(length, 1)));
      bytes.remove_prefix(std::max<size_t>(length, 1));
      continue;
    }
    if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\\' || (quoted && c == '"')) {
      text += {'\\', static_cast<char>(c)};
    } else if (c >= ' ' && c < 0x7F) {
      text += static_cast<char>(c);
    } else {
      text += fmt::format("\\x{:02x}", c);
    }
    bytes.remove_prefix(1);
  }
  return text;
}

size_t DisplayWidth(std::string_view utf8) {
  size_t width = 0;
  for (const char c : utf8) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return width;
}

std::string Fitted(std::string_view utf8, size_t columns) {
  if (DisplayWidth(utf8) <= columns) return std::string(utf8);
  std::string cut;
  size_t width = 0;
  for (const char c : utf8) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++width >= columns) break;
    cut += c;
  }
  return cut + "…";
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
