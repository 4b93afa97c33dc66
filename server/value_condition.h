// What a write may ask of the value that is there: NX, XX, and the comparisons of SET and DELEX. Plain value; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

inline constexpr size_t kDigestDigits = 16;
inline constexpr std::string_view kBadDigest = "ERR must be exactly 16 hexadecimal characters";

// XXH3 of 64 bits over the value, as hexadecimal digits in lower case.
std::string DigestText(std::string_view value);

class ValueCondition {
 public:
  // Each sets the condition from an option of a request. False: `option` is something else, or contradicts what was set before.
  bool SetPresence(std::string_view option);
  // `operand`, a value or a digest, stays in place as long as the condition.
  bool SetComparison(std::string_view option, std::string_view operand);

  // A digest has the right length. What else it is made of only decides whether it is equal.
  bool WellFormed() const;

  // There is none.
  bool Always() const { return kind_ == Kind::kNone; }
  // A missing key is equal to nothing.
  bool Holds(bool found, std::string_view value) const;

 private:
  enum class Kind : uint8_t { kNone, kMissing, kPresent, kEqual, kNotEqual, kDigestEqual, kDigestNotEqual };

  Kind kind_ = Kind::kNone;
  std::string_view operand_;
};

}  // namespace varve
