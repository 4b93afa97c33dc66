// Sizes and durations as people write them in flags and configuration: "64MiB", "512k", "200us".
//
// Sizes follow the convention of GNU tools: a bare letter and ...iB count in powers of 1024, ...B
// in powers of 1000.
//     64k = 64KiB = 65536        64KB = 64000        plain number or B = bytes
// Durations take ns, us, ms, s, min, h or d. Case does not matter; neither signs nor fractions are
// taken. Thread-safety: pure functions.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

// Bytes. InvalidArgument says what was wrong with the text and what is accepted; so does a size
// beyond 64 bits.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

// The shortest text that ParseSize reads back as exactly `bytes`, in powers of 1024: 67108864 is
// "64MiB", 1000 "1000".
std::string FormatSize(uint64_t bytes);

// A unit is required except for 0. InvalidArgument as above; the longest duration is about 292
// years.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// The shortest text that ParseDuration reads back as exactly `duration`, which is not negative:
// 1500us is "1500us".
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace varve
