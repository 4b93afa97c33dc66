#include "server/status/status_value.h"

#include <cmath>
#include <iterator>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Returns the bytes of the UTF-8 character at the front of `text`; 0: there is none.
size_t CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80   ? 1
                      : byte(0) < 0xC2 ? 0
                      : byte(0) < 0xE0 ? 2
                      : byte(0) < 0xF0 ? 3
                      : byte(0) < 0xF5 ? 4
                                       : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is behind the last character.
  if (size == 3 && byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (size == 3 && byte(0) == 0xED && byte(1) >= 0xA0) return 0;
  if (size == 4 && byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (size == 4 && byte(0) == 0xF4 && byte(1) >= 0x90) return 0;
  return size;
}

void WriteText(std::string_view text, std::string* json) {
  *json += '"';
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const char first = text[0];
    if (size == 0) {
      *json += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      *json += '\\';
      *json += first;
    } else if (static_cast<unsigned char>(first) < 0x20) {
      fmt::format_to(std::back_inserter(*json), "\\u{:04x}", static_cast<int>(first));
    } else {
      *json += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  *json += '"';
}

void Write(const StatusValue& value, std::string* json) {
  const bool is_map = value.kind() == StatusValue::Kind::kMap;
  switch (value.kind()) {
    case StatusValue::Kind::kNumber:
      *json += std::isfinite(value.number()) ? fmt::format("{}", value.number()) : "null";
      return;
    case StatusValue::Kind::kInteger:
      *json += fmt::to_string(value.integer());
      return;
    case StatusValue::Kind::kTruth:
      *json += value.truth() ? "true" : "false";
      return;
    case StatusValue::Kind::kText:
      return WriteText(value.text(), json);
    case StatusValue::Kind::kList:
    case StatusValue::Kind::kMap:
      break;
  }
  *json += is_map ? '{' : '[';
  bool first = true;
  for (const auto& [name, member] : value.members()) {
    if (!std::exchange(first, false)) *json += ',';
    if (is_map) {
      WriteText(name, json);
      *json += ':';
    }
    Write(member, json);
  }
  *json += is_map ? '}' : ']';
}

}  // namespace

StatusValue& StatusValue::Set(std::string_view name, StatusValue value) {
  VARVE_ASSERT(kind_ == Kind::kMap);
  VARVE_ASSERT(!name.empty());
  members_.emplace_back(std::string(name), std::move(value));
  return *this;
}

StatusValue& StatusValue::Add(StatusValue value) {
  VARVE_ASSERT(kind_ == Kind::kList);
  members_.emplace_back(std::string(), std::move(value));
  return *this;
}

std::string AsUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    valid += size == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

std::string StatusJson(const StatusValue& value) {
  std::string json;
  Write(value, &json);
  return json;
}

}  // namespace varve
