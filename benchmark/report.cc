#include "benchmark/report.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "benchmark/process.h"

namespace varve::bench {
namespace {

// Characters, not bytes, as tables hold × and µ.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string ThreeDigits(double value) {
  return fmt::format("{:.{}f}", value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

}  // namespace

double Median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

double MedianOf(const Samples& samples, const std::string& row, const std::string& whose,
                const std::string& figure) {
  const auto found = samples.find({row, whose});
  if (found == samples.end()) return 0;
  std::vector<double> values;
  for (const Figures& figures : found->second) {
    if (const auto value = figures.find(figure); value != figures.end())
      values.push_back(value->second);
  }
  return Median(values);
}

std::string FormatRate(double per_second) {
  if (per_second >= 999'500) return ThreeDigits(per_second / 1e6) + "M";
  if (per_second >= 999.5) return ThreeDigits(per_second / 1e3) + "k";
  return fmt::format("{:.0f}", per_second);
}

std::string FormatMicros(double us) { return ThreeDigits(us); }

std::string FormatBytes(double bytes) {
  return bytes >= 99.5e6 ? ThreeDigits(bytes / 1e9) + " GB" : ThreeDigits(bytes / 1e6) + " MB";
}

std::string FormatRatio(double ratio) { return ratio > 0 ? fmt::format("{:.2f}×", ratio) : "-"; }

std::string MarkdownTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 3);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string table;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = i < rows[r].size() ? rows[r][i] : "";
      table += "| " + cell + std::string(widths[i] - Width(cell) + 1, ' ');
    }
    table += "|\n";
    if (r > 0) continue;
    for (const size_t width : widths) table += "| " + std::string(width, '-') + " ";
    table += "|\n";
  }
  return table;
}

std::string MachineKind() {
  std::string model = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(": ") + 2);
      break;
    }
  }
  utsname system{};
  uname(&system);
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const std::string release = system.release;
  return fmt::format("{} × {}, {:.0f} GiB, Linux {}", std::thread::hardware_concurrency(), model,
                     memory / (1u << 30), release.substr(0, release.find('-')));
}

std::string Commit() {
  bool ok = false;
  const std::string commit =
      FirstLine(Capture({"git", "-C", ProgramDirectory(), "rev-parse", "--short", "HEAD"}, &ok));
  if (!ok) return "unknown";
  const std::string changes =
      Capture({"git", "-C", ProgramDirectory(), "status", "--porcelain", "-uno"}, &ok);
  return commit + (changes.empty() ? "" : "+");
}

std::string HistoryLine(const std::string& command, const std::string& figures) {
  char date[32];
  const time_t now = time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  strftime(date, sizeof(date), "%Y-%m-%d", &utc);
  std::string typed;
  // As it would end the cell.
  for (const char c : command) typed += c == '|' ? "\\|" : std::string(1, c);
  return fmt::format("| {} | {} | {} | `{}` | {} |\n", date, Commit(), MachineKind(), typed,
                     figures);
}

bool WritesToConsole(int argc, char** argv) {
  return std::none_of(argv + 1, argv + argc, [](const char* text) {
    const std::string_view arg = text;
    return arg.starts_with("--benchmark_format=") && arg != "--benchmark_format=console";
  });
}

std::string CommandLine(int argc, char** argv) {
  std::string command = std::filesystem::path(argv[0]).filename().string();
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  return command;
}

}  // namespace varve::bench
