#include "benchmark/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/flags/reflection.h"

namespace varve::bench {
namespace {

bool AsksForHelp(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* argument) {
    const std::string_view text(argument);
    return text == "--help" || text == "-help" || text == "-h";
  });
}

void Print(const HelpList& list) {
  fmt::print("\n{}\n", list.heading);
  size_t width = 0;
  for (const auto& [name, what] : list.lines) width = std::max(width, name.size());
  for (const auto& [name, what] : list.lines) fmt::print("  {:{}}  {}\n", name, width, what);
}

HelpList FlagsOf(std::string_view file) {
  std::map<std::string, std::string> flags;  // in the order of their names
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const std::string path = flag->Filename();
    const std::string help = flag->Help();
    if (!path.ends_with(file) || help.starts_with("Internal")) continue;
    flags["--" + std::string(name)] = fmt::format("{} ({})", help, flag->DefaultValue());
  }
  return {"Flags, with what they are by default:", {flags.begin(), flags.end()}};
}

}  // namespace

void HelpIfAsked(int argc, char** argv, std::string_view file, const std::string& purpose,
                 const std::vector<HelpList>& lists, bool has_google_benchmark) {
  if (!AsksForHelp(argc, argv)) return;
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  fmt::print("{}: {}\n", program, purpose);
  for (const HelpList& list : lists) Print(list);
  Print(FlagsOf(file));
  if (has_google_benchmark) {
    fmt::print(
        "\nThe flags of google-benchmark work, too: --benchmark_format=json, --benchmark_filter, "
        "--benchmark_repetitions\nand others.\n");
  }
  fmt::print("\nbenchmark/README.md says how to read what the program prints.\n");
  std::exit(0);
}

}  // namespace varve::bench
