#include "db/segment_format.h"

#include <fmt/format.h>

#include <charconv>

namespace varve {
namespace {

constexpr std::string_view kSuffix = ".seg";

std::string SegmentName(uint64_t number) { return fmt::format("{:06}{}", number, kSuffix); }

}  // namespace

std::string SegmentPath(const std::string& directory, uint64_t number) { return directory + "/" + SegmentName(number); }

std::optional<uint64_t> ParseSegmentName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, name.size() - kSuffix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || SegmentName(number) != name) return std::nullopt;
  return number;
}

}  // namespace varve
