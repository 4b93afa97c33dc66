// How values are compressed: the setting of a store (EngineOptions::compression) and of a namespace
// (NamespaceOptions::compression).
//
// Each value is compressed by itself, so a read of one key still reads one record. The log and the
// write buffers hold plain values; merges compress, and so do flushes where they write values apart
// from their keys. Every read gives the plain value. docs/compaction.md has the rules.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

// The numbers are on disk and never change.
enum class CompressionMethod : uint8_t { kNone = 0, kLz4 = 1, kZstd = 2 };

inline constexpr uint8_t kDefaultZstdLevel = 3;
inline constexpr uint8_t kHighestZstdLevel = 19;

struct Compression {
  CompressionMethod method = CompressionMethod::kNone;
  uint8_t level = 0;  // of zstd: 1 to kHighestZstdLevel; 0 for the other methods

  // Returns whether values are compressed at all.
  bool on() const { return method != CompressionMethod::kNone; }
  friend bool operator==(const Compression&, const Compression&) = default;
};

// Reads `none`, `lz4`, `zstd` or `zstd:LEVEL`, in any case. Returns nothing for any other text.
std::optional<Compression> ParseCompression(std::string_view text);
// Returns the text that ParseCompression reads; the default level is left out.
std::string FormatCompression(const Compression& compression);

}  // namespace varve
