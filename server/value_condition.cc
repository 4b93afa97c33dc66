#include "server/value_condition.h"

#include "fmt/format.h"
#include "server/command_table.h"
#include "util/hash.h"

namespace varve {

// Keys are hashed by the same function; their hash, too, is part of what others rely on and never changes.
std::string DigestText(std::string_view value) { return fmt::format("{:016x}", HashKey(value)); }

bool ValueCondition::SetPresence(std::string_view option) {
  const bool missing = EqualsIgnoreCase(option, "nx");
  if (!missing && !EqualsIgnoreCase(option, "xx")) return false;
  const Kind kind = missing ? Kind::kMissing : Kind::kPresent;
  if (kind_ != Kind::kNone && kind_ != kind) return false;
  kind_ = kind;
  return true;
}

bool ValueCondition::SetComparison(std::string_view option, std::string_view operand) {
  if (kind_ != Kind::kNone) return false;
  if (EqualsIgnoreCase(option, "ifeq")) {
    kind_ = Kind::kEqual;
  } else if (EqualsIgnoreCase(option, "ifne")) {
    kind_ = Kind::kNotEqual;
  } else if (EqualsIgnoreCase(option, "ifdeq")) {
    kind_ = Kind::kDigestEqual;
  } else if (EqualsIgnoreCase(option, "ifdne")) {
    kind_ = Kind::kDigestNotEqual;
  } else {
    return false;
  }
  operand_ = operand;
  return true;
}

bool ValueCondition::WellFormed() const {
  return (kind_ != Kind::kDigestEqual && kind_ != Kind::kDigestNotEqual) || operand_.size() == kDigestDigits;
}

bool ValueCondition::Holds(bool found, std::string_view value) const {
  switch (kind_) {
    case Kind::kNone:
      return true;
    case Kind::kMissing:
      return !found;
    case Kind::kPresent:
      return found;
    case Kind::kEqual:
      return found && value == operand_;
    case Kind::kNotEqual:
      return !found || value != operand_;
    case Kind::kDigestEqual:
      return found && EqualsIgnoreCase(DigestText(value), operand_);
    case Kind::kDigestNotEqual:
      return !found || !EqualsIgnoreCase(DigestText(value), operand_);
  }
  return false;
}

}  // namespace varve
