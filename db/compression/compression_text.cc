// The text of a compression setting (varve/compression.h).
#include <fmt/format.h>

#include <charconv>

#include "absl/strings/match.h"
#include "varve/compression.h"

namespace varve {

std::optional<Compression> ParseCompression(std::string_view text) {
  constexpr std::string_view kZstd = "zstd";
  const auto is = [](std::string_view a, std::string_view b) {
    return absl::EqualsIgnoreCase({a.data(), a.size()}, {b.data(), b.size()});
  };
  if (is(text, "none")) return Compression();
  if (is(text, "lz4")) return Compression{CompressionMethod::kLz4, 0};
  if (!is(text.substr(0, kZstd.size()), kZstd)) return std::nullopt;
  if (text.size() == kZstd.size()) return Compression{CompressionMethod::kZstd, kDefaultZstdLevel};
  if (text[kZstd.size()] != ':') return std::nullopt;
  const std::string_view digits = text.substr(kZstd.size() + 1);
  unsigned level = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
  if (error != std::errc() || end != digits.data() + digits.size() || level == 0 ||
      level > kHighestZstdLevel)
    return std::nullopt;
  return Compression{CompressionMethod::kZstd, static_cast<uint8_t>(level)};
}

std::string FormatCompression(const Compression& compression) {
  switch (compression.method) {
    case CompressionMethod::kNone:
      return "none";
    case CompressionMethod::kLz4:
      return "lz4";
    case CompressionMethod::kZstd:
      break;
  }
  return compression.level == kDefaultZstdLevel ? "zstd"
                                                : fmt::format("zstd:{}", compression.level);
}

}  // namespace varve
