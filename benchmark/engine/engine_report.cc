#include "benchmark/engine/engine_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmark/report.h"

namespace varve::bench {
namespace {

// A geometric mean.
struct Mean {
  double logarithms = 0;
  int count = 0;

  void Add(double ratio) {
    logarithms += std::log(ratio);
    ++count;
  }
  double Value() const { return count == 0 ? 0 : std::exp(logarithms / count); }
};

std::string MainCell(const Row& row, double figure) {
  if (row.figure() == std::string(kShare)) return FormatRatio(figure);
  if (!row.less_is_better()) return FormatRate(figure);
  return row.figure() == std::string(kResident) ? FormatBytes(figure)
                                                : fmt::format("{:.2f}", figure);
}

std::string BesideCell(const Samples& samples, const Row& row, const Engine& engine,
                       const std::string& why_not) {
  const auto median = [&](const std::string& figure) {
    return MedianOf(samples, row.id, engine.id, figure);
  };
  if (median("cpu_us") == 0) return why_not;
  std::string cell;
  for (const char* percentile : {"p50_us", "p99_us", "p999_us", "p9999_us"}) {
    if (const double us = median(percentile); us > 0)
      cell += (cell.empty() ? "" : " / ") + FormatMicros(us);
  }
  cell += fmt::format("{}CPU {}", cell.empty() ? "" : ", ", FormatMicros(median("cpu_us")));
  if (const double rate = median("writes_per_second"); rate > 0)
    cell += fmt::format(", {} writes/s", FormatRate(rate));
  if (row.short_of_memory())
    cell += fmt::format(", {:.2f} reads, {:.0f} B", median("disk_reads"), median("disk_bytes"));
  if (const double resident = median(kResident); resident > 0) cell += ", " + FormatBytes(resident);
  if (const double bare = median("write_per_second"); bare > 0)
    cell += fmt::format(", write() {}/s", FormatRate(bare));
  return cell;
}

// One row of the tables, for all engines.
struct Comparison {
  std::vector<std::string> cells;
  std::vector<std::string> beside;
  double ours = 0;
  // To the best peer, above 1 where Varve is better; 0 where one of them is missing.
  double ratio = 0;
  bool ran = false;  // with some engine
};

Comparison Compare(const Row& row, const std::vector<Engine>& engines, const Samples& samples,
                   const Reasons& reasons) {
  Comparison comparison{.cells = {row.title}, .beside = {row.title}};
  double best = 0;
  std::string best_title = "-";
  for (const Engine& engine : engines) {
    const double figure = MedianOf(samples, row.id, engine.id, row.figure());
    const auto reason = reasons.find({row.id, engine.id});
    const std::string why_not = reason == reasons.end() ? kNotRun : reason->second;
    comparison.cells.push_back(figure == 0 ? why_not : MainCell(row, figure));
    comparison.beside.push_back(BesideCell(samples, row, engine, why_not));
    comparison.ran = comparison.ran || MedianOf(samples, row.id, engine.id, "cpu_us") > 0;
    if (engine.id == "varve") {
      comparison.ours = figure;
    } else if (figure > 0 &&
               (best == 0 || (row.less_is_better() ? figure < best : figure > best))) {
      best = figure;
      best_title = engine.title;
    }
  }
  const double ours = comparison.ours;
  comparison.ratio = ours == 0 || best == 0 ? 0 : row.less_is_better() ? best / ours : ours / best;
  comparison.cells.push_back(best_title);
  comparison.cells.push_back(FormatRatio(comparison.ratio));
  return comparison;
}

}  // namespace

EngineReport Report(const std::vector<Row>& rows, const std::vector<Engine>& engines,
                    const Samples& samples, const Reasons& reasons) {
  std::vector<std::vector<std::string>> table = {{"work"}};
  std::vector<std::vector<std::string>> beside = {{"work"}};
  for (const Engine& engine : engines) {
    table[0].push_back(engine.title);
    beside[0].push_back(engine.title);
  }
  table[0].insert(table[0].end(), {"best peer", "Varve / best peer"});
  EngineReport report;
  Mean of_rates;
  Mean of_all;
  for (const Row& row : rows) {
    const Comparison comparison = Compare(row, engines, samples, reasons);
    const double ours = comparison.ours;
    const double ratio = comparison.ratio;
    table.push_back(comparison.cells);
    // What was counted beside it stands with the row before it, of the same run.
    if (comparison.ran && row.figure() != std::string(kSpace) && row.work != Work::kResidentFilled)
      beside.push_back(comparison.beside);
    if (const double bare = MedianOf(samples, row.id, kBareWrite, kRate); bare > 0) {
      report.notes +=
          fmt::format("{}: a bare write() of the same bytes does {}/s; Varve {} of it.\n",
                      row.title, FormatRate(bare), FormatRatio(ours / bare));
    }
    if (ratio == 0) continue;
    of_all.Add(ratio);
    if (!row.less_is_better()) of_rates.Add(ratio);
    report.history += fmt::format("{} {:.2f}, ", row.id, ratio);
  }
  if (of_all.count > 0) {
    report.notes =
        fmt::format(
            "Geometric mean of the ratios to the best peer: {} of {} rates, {} of all {} rows.\n",
            FormatRatio(of_rates.Value()), of_rates.count, FormatRatio(of_all.Value()),
            of_all.count) +
        report.notes;
    report.history += fmt::format("geometric mean of rates {:.2f}, of all {:.2f}", of_rates.Value(),
                                  of_all.Value());
  }
  report.table = MarkdownTable(table);
  report.beside = MarkdownTable(beside);
  return report;
}

}  // namespace varve::bench
