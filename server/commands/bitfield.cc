#include "server/commands/bitfield.h"

#include "util/redis_format/bits.h"
#include "util/resp/resp_parser.h"
#include "varve/options.h"

namespace varve {
namespace {

constexpr uint64_t kMaxBits = uint64_t{kMaxValueSize} * 8;

// The number that the lowest bits of `value` mean in a field.
int64_t Truncate(BitFieldType type, uint64_t value) {
  const unsigned unused = 64 - type.bits;
  if (!type.is_signed) return static_cast<int64_t>(value << unused >> unused);
  return static_cast<int64_t>(value << unused) >> unused;  // carries the sign along
}

enum class Fit { kFits, kTooSmall, kTooLarge };

std::optional<int64_t> ApplyOverflow(BitFieldType type, Fit fit, uint64_t value,
                                     BitFieldOverflow overflow) {
  if (fit == Fit::kFits || overflow == BitFieldOverflow::kWrap) return Truncate(type, value);
  if (overflow == BitFieldOverflow::kFail) return std::nullopt;
  return fit == Fit::kTooLarge ? type.Max() : type.Min();
}

Fit FitOf(BitFieldType type, int64_t value) {
  if (value > type.Max()) return Fit::kTooLarge;
  return value < type.Min() ? Fit::kTooSmall : Fit::kFits;
}

}  // namespace

int64_t BitFieldType::Min() const { return is_signed ? -Max() - 1 : 0; }

int64_t BitFieldType::Max() const {
  const unsigned digits = is_signed ? bits - 1 : bits;
  return static_cast<int64_t>((uint64_t{1} << digits) - 1);
}

std::optional<BitFieldType> ParseBitFieldType(std::string_view text) {
  if (text.empty() || (text[0] != 'i' && text[0] != 'u')) return std::nullopt;
  const bool is_signed = text[0] == 'i';
  int64_t bits = 0;
  if (!ParseRespInteger(text.substr(1), &bits) || bits < 1 || bits > (is_signed ? 64 : 63))
    return std::nullopt;
  return BitFieldType{is_signed, static_cast<unsigned>(bits)};
}

std::optional<uint64_t> ParseBitOffset(std::string_view text) {
  int64_t offset = 0;
  if (!ParseRespInteger(text, &offset) || offset < 0 || static_cast<uint64_t>(offset) >= kMaxBits)
    return std::nullopt;
  return static_cast<uint64_t>(offset);
}

std::optional<uint64_t> ParseFieldOffset(std::string_view text, unsigned bits) {
  if (!text.starts_with('#')) return ParseBitOffset(text);
  const std::optional<uint64_t> index = ParseBitOffset(text.substr(1));
  if (!index || *index * bits >= kMaxBits) return std::nullopt;
  return *index * bits;
}

int64_t ReadField(std::string_view bytes, BitFieldType type, uint64_t offset) {
  return Truncate(type, ReadBits(bytes, offset, type.bits));
}

std::optional<int64_t> FitValue(BitFieldType type, int64_t value, BitFieldOverflow overflow) {
  const Fit fit = !type.is_signed && value < 0 ? Fit::kTooLarge : FitOf(type, value);
  return ApplyOverflow(type, fit, static_cast<uint64_t>(value), overflow);
}

std::optional<int64_t> FitSum(BitFieldType type, int64_t number, int64_t increment,
                              BitFieldOverflow overflow) {
  int64_t sum = 0;
  const bool beyond = __builtin_add_overflow(number, increment, &sum);
  const Fit fit = beyond ? (increment > 0 ? Fit::kTooLarge : Fit::kTooSmall) : FitOf(type, sum);
  return ApplyOverflow(type, fit, static_cast<uint64_t>(sum), overflow);
}

}  // namespace varve
