#include "server/http/metrics_text.h"

#include <iterator>

#include "fmt/format.h"
#include "server/status/status_value.h"
#include "util/base/assert.h"

namespace varve {
namespace {

std::string_view TypeWord(MetricsText::Type type, MetricsText::Format format) {
  switch (type) {
    case MetricsText::Type::kCounter:
      return "counter";
    case MetricsText::Type::kHistogram:
      return "histogram";
    case MetricsText::Type::kInfo:
      if (format == MetricsText::Format::kOpenMetrics) return "info";
      [[fallthrough]];
    case MetricsText::Type::kGauge:
      return "gauge";
  }
  return "";
}

// A label's value, or, without quotes, a help text.
std::string Escaped(std::string_view text, bool quotes) {
  std::string escaped;
  for (const char c : AsUtf8(text)) {
    if (c == '\\' || (quotes && c == '"')) escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string_view MetricsText::ContentType(Format format) {
  return format == Format::kPlain
             ? std::string_view("text/plain; version=0.0.4; charset=utf-8")
             : std::string_view("application/openmetrics-text; version=1.0.0; charset=utf-8");
}

std::string_view MetricsText::Ending() const {
  if (type_ == Type::kCounter) return "_total";
  return type_ == Type::kInfo ? "_info" : "";
}

void MetricsText::Family(std::string_view name, Type type, std::string_view unit,
                         std::string_view help) {
  VARVE_ASSERT(unit.empty() || name.ends_with(unit));
  VARVE_ASSERT(!name.empty() && !help.empty());
  name_ = name;
  type_ = type;
  const auto out = std::back_inserter(text_);
  // OpenMetrics describes the family, plain text the samples.
  const std::string described =
      name_ + std::string(format_ == Format::kPlain ? Ending() : std::string_view());
  fmt::format_to(out, "# HELP {} {}\n# TYPE {} {}\n", described, Escaped(help, false), described,
                 TypeWord(type, format_));
  if (format_ == Format::kOpenMetrics && !unit.empty())
    fmt::format_to(out, "# UNIT {} {}\n", described, unit);
}

void MetricsText::Line(std::string_view ending, Labels labels, std::string_view bound,
                       std::string_view value) {
  VARVE_ASSERT(!name_.empty());
  const auto out = std::back_inserter(text_);
  fmt::format_to(out, "{}{}", name_, ending);
  std::string_view before = "{";
  for (const auto& [name, text] : labels) {
    fmt::format_to(out, "{}{}=\"{}\"", before, name, Escaped(text, true));
    before = ",";
  }
  if (!bound.empty()) {
    fmt::format_to(out, "{}le=\"{}\"", before, bound);
    before = ",";
  }
  fmt::format_to(out, "{} {}\n", before == "," ? "}" : "", value);
}

void MetricsText::Sample(Labels labels, uint64_t value) {
  VARVE_ASSERT(type_ != Type::kHistogram);
  Line(Ending(), labels, "", fmt::to_string(value));
}

void MetricsText::Sample(Labels labels, double value) {
  VARVE_ASSERT(type_ != Type::kHistogram);
  Line(Ending(), labels, "", fmt::format("{}", value));
}

void MetricsText::Histogram(Labels labels, const DurationCounts& counts) {
  VARVE_ASSERT(type_ == Type::kHistogram);
  uint64_t sum = 0;
  for (size_t i = 0; i < DurationCounts::kBounds.size(); ++i) {
    sum += counts.buckets[i];
    std::string bound = fmt::format("{}", static_cast<double>(DurationCounts::kBounds[i]) / 1e9);
    if (format_ == Format::kOpenMetrics && bound.find_first_of(".e") == std::string::npos)
      bound += ".0";
    Line("_bucket", labels, bound, fmt::to_string(sum));
  }
  sum += counts.buckets.back();
  Line("_bucket", labels, "+Inf", fmt::to_string(sum));
  Line("_sum", labels, "", fmt::format("{}", static_cast<double>(counts.nanos) / 1e9));
  Line("_count", labels, "", fmt::to_string(sum));
}

std::string MetricsText::Take() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace varve
