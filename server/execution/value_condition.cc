#include "server/execution/value_condition.h"

#include "fmt/format.h"
#include "server/execution/request_checks.h"
#include "util/base/hash.h"
#include "util/base/letter_case.h"
#include "util/resp/resp_parser.h"

namespace varve {

// Keys are hashed by the same function; their hash, too, is part of what others rely on and never
// changes.
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
  } else if (EqualsIgnoreCase(option, "ifversion")) {
    kind_ = Kind::kVersion;
    int64_t version = 0;
    is_version_ = ParseRespInteger(operand, &version) && version >= 0;
    version_ = static_cast<uint64_t>(version);
  } else {
    return false;
  }
  operand_ = operand;
  return true;
}

std::string_view ValueCondition::Defect() const {
  const bool digest = kind_ == Kind::kDigestEqual || kind_ == Kind::kDigestNotEqual;
  if (digest && operand_.size() != kDigestDigits) return kBadDigest;
  return kind_ == Kind::kVersion && !is_version_ ? kBadVersion : std::string_view();
}

bool ValueCondition::Holds(const ReadResult& read, std::string_view value) const {
  const bool found = read.found;
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
    case Kind::kVersion:
      return found ? version_ != 0 && read.version == version_ : version_ == 0;
  }
  return false;
}

}  // namespace varve
