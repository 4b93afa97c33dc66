// One reply of the server as a client sees it: a tree of RESP values. Plain value;
// thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace varve {

struct Reply {
  enum class Type { kNull, kSimple, kError, kInteger, kBulk, kDouble, kBool, kArray, kMap, kPush };

  Type type = Type::kNull;
  std::string text;             // kSimple, kError (without "-"), kBulk, kDouble (as sent)
  int64_t integer = 0;          // kInteger, kBool
  std::vector<Reply> elements;  // kArray, kPush, kMap (key, value, key, value, ...)
  bool is_verbatim = false;     // kBulk: text for people, such as INFO's, that RESP3 marks as such

  bool is_error() const { return type == Type::kError; }
  bool is_null() const { return type == Type::kNull; }
};

}  // namespace varve
