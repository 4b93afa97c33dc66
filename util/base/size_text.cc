#include "util/base/size_text.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <system_error>

namespace varve {
namespace {

struct Unit {
  std::string_view name;  // in lower case
  uint64_t factor;
};

constexpr uint64_t kKi = 1024, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024,
                   kPi = kTi * 1024;

constexpr Unit kSizeUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", kKi},
    {"m", kMi},
    {"g", kGi},
    {"t", kTi},
    {"p", kPi},
    {"kib", kKi},
    {"mib", kMi},
    {"gib", kGi},
    {"tib", kTi},
    {"pib", kPi},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
    {"pb", 1'000'000'000'000'000},
};

constexpr Unit kDurationUnits[] = {
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"min", 60'000'000'000},
    {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000},
};

// What the formatters choose from: the largest first.
constexpr Unit kSizeOutput[] = {
    {"PiB", kPi}, {"TiB", kTi}, {"GiB", kGi}, {"MiB", kMi}, {"KiB", kKi}};
constexpr Unit kDurationOutput[] = {{"d", 86'400'000'000'000}, {"h", 3'600'000'000'000},
                                    {"min", 60'000'000'000},   {"s", 1'000'000'000},
                                    {"ms", 1'000'000},         {"us", 1'000}};

// What may be written where this kind of quantity is expected, for messages.
struct Quantity {
  std::string_view name;
  std::string_view examples;
  std::span<const Unit> units;
  uint64_t max;
};

constexpr Quantity kSize = {"size", "bytes or a number with a unit such as 512k, 64MiB or 10MB",
                            kSizeUnits, std::numeric_limits<uint64_t>::max()};
constexpr Quantity kDuration = {
    "duration", "a number with a unit such as 200us, 5ms, 1s, 10min, 1h or 1d", kDurationUnits,
    static_cast<uint64_t>(std::numeric_limits<int64_t>::max())};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::optional<uint64_t> FactorOf(std::string_view unit, std::span<const Unit> units) {
  const std::string lower = LowerCase(unit);
  for (const Unit& candidate : units) {
    if (candidate.name == lower) return candidate.factor;
  }
  return std::nullopt;
}

absl::Status Refuse(std::string_view text, const Quantity& quantity, std::string_view reason) {
  return absl::InvalidArgumentError(fmt::format("\"{}\" is not a {}: {}; write {}", text,
                                                quantity.name, reason, quantity.examples));
}

absl::StatusOr<uint64_t> Parse(std::string_view text, const Quantity& quantity) {
  uint64_t number = 0;
  const char* const limit = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), limit, number);
  if (error == std::errc::result_out_of_range)
    return Refuse(text, quantity, "the number is too large");
  if (error != std::errc()) return Refuse(text, quantity, "it does not begin with a digit");

  std::string_view unit(end, static_cast<size_t>(limit - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (number == 0 && unit.empty()) return 0;
  const std::optional<uint64_t> factor = FactorOf(unit, quantity.units);
  if (!factor.has_value()) {
    return Refuse(text, quantity,
                  unit.empty() ? std::string("the unit is missing")
                               : fmt::format("unknown unit \"{}\"", unit));
  }
  if (number > quantity.max / *factor) return Refuse(text, quantity, "it is too large");
  return number * *factor;
}

// The largest unit that divides `value`, else the plain number with `base`.
std::string Format(uint64_t value, std::span<const Unit> units, std::string_view base) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0)
      return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("{}{}", value, base);
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(std::string_view text) { return Parse(text, kSize); }

std::string FormatSize(uint64_t bytes) { return Format(bytes, kSizeOutput, ""); }

absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  const absl::StatusOr<uint64_t> nanoseconds = Parse(text, kDuration);
  if (!nanoseconds.ok()) return nanoseconds.status();
  return std::chrono::nanoseconds(static_cast<int64_t>(*nanoseconds));
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  if (duration.count() == 0) return "0";
  return Format(static_cast<uint64_t>(duration.count()), kDurationOutput, "ns");
}

}  // namespace varve
