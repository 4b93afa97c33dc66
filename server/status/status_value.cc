#include "server/status/status_value.h"

#include <cmath>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/json_text.h"

namespace varve {
namespace {

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
      return AppendJsonText(value.text(), json);
    case StatusValue::Kind::kList:
    case StatusValue::Kind::kMap:
      break;
  }
  *json += is_map ? '{' : '[';
  bool first = true;
  for (const auto& [name, member] : value.members()) {
    if (!std::exchange(first, false)) *json += ',';
    if (is_map) {
      AppendJsonText(name, json);
      *json += ':';
    }
    Write(member, json);
  }
  *json += is_map ? '}' : ']';
}

}  // namespace

StatusValue& StatusValue::Set(std::string_view name, StatusValue value) & {
  VARVE_ASSERT(kind_ == Kind::kMap);
  VARVE_ASSERT(!name.empty());
  members_.emplace_back(std::string(name), std::move(value));
  return *this;
}

StatusValue& StatusValue::Add(StatusValue value) & {
  VARVE_ASSERT(kind_ == Kind::kList);
  members_.emplace_back(std::string(), std::move(value));
  return *this;
}

std::string AsUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t size = Utf8CharacterSize(text);
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
