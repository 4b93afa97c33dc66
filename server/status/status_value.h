// A status value is a piece of the status document: a number, a text, a truth, a list or a map
// whose names keep their order. The same tree is written as JSON and as a RESP map.
//
// Thread-safety: a plain value.
// Invariants: a list has members without names, a map members with names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace varve {

class StatusValue {
 public:
  using Member = std::pair<std::string, StatusValue>;
  enum class Kind { kNumber, kInteger, kTruth, kText, kList, kMap };

  static StatusValue Number(double value) { return StatusValue(value); }
  static StatusValue Integer(uint64_t value) { return StatusValue(static_cast<int64_t>(value)); }
  static StatusValue Truth(bool value) { return StatusValue(value); }
  static StatusValue Text(std::string_view value) { return StatusValue(std::string(value)); }
  static StatusValue List() { return StatusValue(Kind::kList); }
  static StatusValue Map() { return StatusValue(Kind::kMap); }

  // Append a member to a map or to a list.
  StatusValue& Set(std::string_view name, StatusValue value) &;
  StatusValue& Add(StatusValue value) &;
  StatusValue&& Set(std::string_view name, StatusValue value) && {
    return std::move(Set(name, std::move(value)));
  }
  StatusValue&& Add(StatusValue value) && { return std::move(Add(std::move(value))); }

  Kind kind() const { return kind_; }
  double number() const { return std::get<double>(scalar_); }
  int64_t integer() const { return std::get<int64_t>(scalar_); }
  bool truth() const { return std::get<bool>(scalar_); }
  const std::string& text() const { return std::get<std::string>(scalar_); }
  const std::vector<Member>& members() const { return members_; }

 private:
  explicit StatusValue(double value) : kind_(Kind::kNumber), scalar_(value) {}
  explicit StatusValue(int64_t value) : kind_(Kind::kInteger), scalar_(value) {}
  explicit StatusValue(bool value) : kind_(Kind::kTruth), scalar_(value) {}
  explicit StatusValue(std::string value) : kind_(Kind::kText), scalar_(std::move(value)) {}
  explicit StatusValue(Kind kind) : kind_(kind) {}

  Kind kind_;
  std::variant<int64_t, double, bool, std::string> scalar_;
  std::vector<Member> members_;
};

// Returns the text as UTF-8: bytes that are none become U+FFFD.
std::string AsUtf8(std::string_view text);

// Writes the value as JSON. Bytes of texts that are no UTF-8 become U+FFFD.
std::string StatusJson(const StatusValue& value);

}  // namespace varve
