#include "tools/archive/archive_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace varve {
namespace {

constexpr std::string_view kGaps = "varve_archive_gaps_total";
constexpr std::string_view kBases = "varve_archive_bases_total";
constexpr std::string_view kFiles = "varve_archive_files_total";
constexpr std::string_view kBytes = "varve_archive_bytes_total";

std::string Metric(std::string_view name, std::string_view type, std::string_view help,
                   std::string_view value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

std::string Counter(std::string_view name, std::string_view help, uint64_t value) {
  return Metric(name, "counter", help, fmt::to_string(value));
}

std::string Gauge(std::string_view name, std::string_view help, std::string_view value) {
  return Metric(name, "gauge", help, value);
}

std::string Seconds(uint64_t ms) { return fmt::format("{}.{:03}", ms / 1000, ms % 1000); }

uint64_t ValueOf(std::string_view text, std::string_view name) {
  const std::string line = fmt::format("\n{} ", name);
  const size_t at = text.find(line);
  uint64_t value = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + line.size(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string EncodeArchiveMetrics(const ArchiveMetrics& metrics,
                                 const std::optional<ArchivePosition>& position, uint64_t now_ms) {
  std::string text =
      Gauge("varve_archive_gap", "Whether changes are missing that no base has yet.",
            metrics.gap ? "1" : "0") +
      Counter(kGaps, "Gaps that arose, healed ones included.", metrics.gaps) +
      Counter(kBases, "Bases that were taken.", metrics.bases) +
      Counter(kFiles, "Change files that were written.", metrics.files) +
      Counter(kBytes, "Bytes of change files, and of files of bases that were copied.",
              metrics.bytes);
  if (!position) return text;
  const uint64_t current_ms = std::max(position->current_ms, position->instant_ms);
  return text +
         Gauge("varve_archive_last_version", "The newest version in the archive.",
               fmt::to_string(position->version)) +
         Gauge("varve_archive_last_instant_seconds", "When the newest version was written.",
               Seconds(position->instant_ms)) +
         Gauge("varve_archive_current_instant_seconds", "Until when the archive has everything.",
               Seconds(current_ms)) +
         Gauge("varve_archive_lag_seconds", "How long ago that was when this was written.",
               Seconds(now_ms - std::min(now_ms, current_ms)));
}

ArchiveMetrics DecodeArchiveCounters(std::string_view text) {
  return {.gaps = ValueOf(text, kGaps),
          .bases = ValueOf(text, kBases),
          .files = ValueOf(text, kFiles),
          .bytes = ValueOf(text, kBytes)};
}

}  // namespace varve
