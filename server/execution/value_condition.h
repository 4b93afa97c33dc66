// The condition of a write on the value that it replaces: NX, XX, and the comparisons of SET and
// DELEX with that value or its version.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "varve/store.h"

namespace varve {

inline constexpr size_t kDigestDigits = 16;
inline constexpr std::string_view kBadDigest = "ERR must be exactly 16 hexadecimal characters";
inline constexpr std::string_view kBadVersion =
    "ERR a version is an integer, and 0 that of a missing key";

// Returns XXH3 of 64 bits over the value, as hexadecimal digits in lower case.
std::string DigestText(std::string_view value);

class ValueCondition {
 public:
  // Each sets the condition from an option of a request. False: `option` is something else, or
  // contradicts what was set before.
  bool SetPresence(std::string_view option);
  // `operand`, a value, a digest or a version, stays in place as long as the condition.
  bool SetComparison(std::string_view option, std::string_view operand);

  // Returns why the operand can't be one, or nothing. Only the length of a digest counts: what else
  // it is made of decides whether it is equal.
  std::string_view Defect() const;

  // Returns whether there is no condition.
  bool Always() const { return kind_ == Kind::kNone; }
  // Returns whether the condition is on the version.
  bool ComparesVersion() const { return kind_ == Kind::kVersion; }
  // `value` is that of what was found. A missing key's value is equal to nothing, its version is 0.
  bool Holds(const ReadResult& read, std::string_view value) const;

 private:
  enum class Kind : uint8_t {
    kNone,
    kMissing,
    kPresent,
    kEqual,
    kNotEqual,
    kDigestEqual,
    kDigestNotEqual,
    kVersion
  };

  Kind kind_ = Kind::kNone;
  std::string_view operand_;
  uint64_t version_ = 0;
  bool is_version_ = false;  // the operand is one
};

}  // namespace varve
