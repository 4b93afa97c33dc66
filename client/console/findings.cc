#include "client/console/findings.h"

#include <algorithm>

#include "client/console/text.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr std::string_view kBadColour = "31";   // red
constexpr std::string_view kGoodColour = "32";  // green
constexpr std::string_view kDimWordColour = "2";

std::string_view ColourOf(std::string_view kind) {
  if (kind == "damage") return kBadColour;
  return kind == "saved" ? kGoodColour : kDimWordColour;
}

std::string JsonLine(const Finding& finding) {
  std::string line = fmt::format("{{\"kind\":\"{}\",\"file\":", finding.kind);
  AppendJsonBytes(finding.file, &line);
  line += fmt::format(",\"offset\":{},\"what\":", finding.offset);
  AppendJsonBytes(finding.what, &line);
  return line + "}\n";
}

}  // namespace

void PrintFindings(const std::vector<Finding>& findings, const Output& output) {
  size_t kind_width = 0, file_width = 0, offset_width = 0;
  for (const Finding& finding : findings) {
    kind_width = std::max(kind_width, finding.kind.size());
    file_width = std::max(file_width, finding.file.size());
    offset_width = std::max(offset_width, fmt::formatted_size("{}", finding.offset));
  }
  for (const Finding& finding : findings) {
    if (output.style == OutputStyle::kJson) {
      PrintOut(JsonLine(finding));
    } else if (output.style == OutputStyle::kRaw) {
      PrintOut(fmt::format("{}\t{}\t{}\t{}\n", finding.kind, finding.file, finding.offset,
                           finding.what));
    } else {
      const std::string kind = fmt::format("{:<{}}", finding.kind, kind_width);
      PrintOut(fmt::format("{}  {:<{}}  {:>{}}  {}\n",
                           output.Coloured(kind, ColourOf(finding.kind)), Escaped(finding.file),
                           file_width, finding.offset, offset_width, Escaped(finding.what)));
    }
  }
}

void PrintSummary(std::string_view text,
                  const std::vector<std::pair<std::string_view, uint64_t>>& numbers,
                  const Output& output) {
  if (output.style != OutputStyle::kJson) return PrintOut(fmt::format("{}\n", text));
  std::string line;
  for (const auto& [name, number] : numbers) {
    line += fmt::format("{}\"{}\":{}", line.empty() ? "{" : ",", name, number);
  }
  PrintOut(line + "}\n");
}

}  // namespace varve
