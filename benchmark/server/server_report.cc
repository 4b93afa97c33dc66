#include "benchmark/server/server_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace varve::bench {
namespace {

// From this share of the null server's requests on, the client and the sockets are what is
// measured.
constexpr double kNearNull = 0.9;
// From this share of a processor on, the client has hardly any time left.
constexpr double kBusyClient = 0.95;
// Below this share of what was due in an open row, a queue grew for as long as it was measured, and
// its times say how long that was.
constexpr double kKeepsUp = 0.98;

std::string FormatMegabytes(double bytes) { return fmt::format("{:.0f} MB", bytes / 1e6); }

class Table {
 public:
  Table(const Samples& samples, const Reasons& reasons) : samples_(samples), reasons_(reasons) {}

  void Add(const ServerRow& row) {
    const double varve = Figure(row, kVarve);
    const double redis = Ratio(row, kRedis);
    const double null = Ratio(row, kNull);
    main_.push_back({row.title(), MainCell(row, kVarve), MainCell(row, kRedis),
                     MainCell(row, kNull), FormatRatio(redis),
                     FormatRatio(row.less_is_better() ? 0 : null), Goals(row)});
    if (redis > 0) history_ += fmt::format("{} {:.2f}, ", row.id, redis);
    if (const double retaining = Retaining(row); retaining > 0)
      history_ += fmt::format("{} with a history/without {:.2f}, ", row.id, retaining);
    AddBeside(row);
    if (varve == 0 || row.less_is_better()) return;
    brief_.push_back({row.title(), MainCell(row, kVarve), MainCell(row, kRedis), FormatRatio(redis),
                      BriefLatencies(row, kVarve), BriefLatencies(row, kRedis)});
    if (null >= kNearNull)
      near_null_ += fmt::format("{}{}", near_null_.empty() ? "" : ", ", row.id);
    if (Median(row, kVarve, "client_busy") >= kBusyClient) {
      busy_client_ += fmt::format("{}{}", busy_client_.empty() ? "" : ", ", row.id);
    }
  }

  ServerReport Take() const {
    ServerReport report;
    report.table = MarkdownTable(main_);
    report.beside = MarkdownTable(beside_);
    report.brief = MarkdownTable(brief_);
    report.history = history_;
    if (goals_ > 0) {
      report.notes = fmt::format("Goals: {} of {} reached{}.\n", goals_ - missed_goals_, goals_,
                                 missed_.empty() ? "" : "; missed: " + missed_);
      report.history += fmt::format("goals {} of {}", goals_ - missed_goals_, goals_);
    }
    if (!near_null_.empty()) {
      report.notes += fmt::format(
          "At {:.0f} % of the null server or more, where the client and the sockets are the "
          "limit: {}.\n",
          100 * kNearNull, near_null_);
    }
    if (!busy_client_.empty()) {
      report.notes += fmt::format("The client took {:.0f} % of a processor or more: {}.\n",
                                  100 * kBusyClient, busy_client_);
    }
    return report;
  }

 private:
  double Median(const ServerRow& row, const std::string& contender,
                const std::string& figure) const {
    return MedianOf(samples_, row.id, contender, figure);
  }
  double Figure(const ServerRow& row, const std::string& contender) const {
    return Median(row, contender, row.figure());
  }

  bool Overloaded(const ServerRow& row, const std::string& contender) const {
    return row.kind == RowKind::kOpen &&
           Median(row, contender, kRequestRate) <
               kKeepsUp * Median(row, contender, "offered_per_second");
  }

  // Varve's lead; 0 where one of the two was not measured, or could not keep up with an open row.
  double Ratio(const ServerRow& row, const std::string& contender) const {
    if (Overloaded(row, kVarve) || Overloaded(row, contender)) return 0;
    const double ours = Figure(row, kVarve);
    const double theirs = Figure(row, contender);
    if (ours <= 0 || theirs <= 0) return 0;
    return row.less_is_better() ? theirs / ours : ours / theirs;
  }

  // Returns the rate of Varve with a history divided by that of Varve without; 0 as above.
  double Retaining(const ServerRow& row) const {
    const double without = Figure(row, kVarve);
    return without > 0 ? Figure(row, kVarveRetaining) / without : 0;
  }

  std::string WhyNotRun(const ServerRow& row, const std::string& contender) const {
    if (std::string why = row.WhyNot(contender); !why.empty()) return why;
    const auto reason = reasons_.find({row.id, contender});
    return reason == reasons_.end() ? kNotRun : reason->second;
  }

  std::string MainCell(const ServerRow& row, const std::string& contender) const {
    const double figure = Figure(row, contender);
    if (figure == 0) return WhyNotRun(row, contender);
    switch (row.kind) {
      case RowKind::kOpen:
        return FormatMicros(figure) + (Overloaded(row, contender) ? ", overloaded" : "");
      case RowKind::kListing:
      case RowKind::kFeedLag:
        return FormatMicros(figure);
      case RowKind::kKeysMemory:
        return FormatMegabytes(figure);
      case RowKind::kConnectionMemory:
      case RowKind::kStalledReaders:
        return fmt::format("{:.0f} B", figure);
      default:
        return FormatRate(figure);
    }
  }

  std::string BesideCell(const ServerRow& row, const std::string& contender) const {
    const double p50 = Median(row, contender, "p50_us");
    if (p50 == 0) return "-";
    std::string cell =
        fmt::format("{} / {}", FormatMicros(p50), FormatMicros(Median(row, contender, "p99_us")));
    if (const double p999 = Median(row, contender, "p999_us"); p999 > 0)
      cell += " / " + FormatMicros(p999);
    cell += ", CPU " + FormatMicros(Median(row, contender, "server_cpu_us"));
    if (row.kind == RowKind::kOpen) {
      cell += fmt::format(", {} of {}/s", FormatRate(Median(row, contender, kRequestRate)),
                          FormatRate(Median(row, contender, "offered_per_second")));
    }
    if (row.kind == RowKind::kCold) {
      cell += fmt::format(", {:.2f} reads, {}", Median(row, contender, "disk_reads"),
                          FormatMegabytes(Median(row, contender, kServerMemory)));
    }
    if (row.kind == RowKind::kKeysMemory) {
      cell += fmt::format(", {} once loaded",
                          FormatMegabytes(Median(row, contender, "resident_loaded_bytes")));
    }
    return cell;
  }

  // In milliseconds.
  std::string BriefLatencies(const ServerRow& row, const std::string& contender) const {
    const double p50 = Median(row, contender, "p50_us");
    if (p50 == 0) return "-";
    return fmt::format("{:.2f} / {:.2f}", p50 * 1e-3, Median(row, contender, "p99_us") * 1e-3);
  }

  void AddBeside(const ServerRow& row) {
    double busiest = 0;
    for (const char* contender : {kVarve, kRedis, kNull}) {
      busiest = std::max(busiest, Median(row, contender, "client_busy"));
    }
    const bool has_latencies = Median(row, kVarve, "p50_us") + Median(row, kRedis, "p50_us") +
                                   Median(row, kNull, "p50_us") >
                               0;
    if (!has_latencies) return;
    beside_.push_back({row.title(), BesideCell(row, kVarve), BesideCell(row, kRedis),
                       BesideCell(row, kNull),
                       busiest > 0 ? fmt::format("{:.0f} %", 100 * busiest) : "-"});
  }

  // All goals of a row, each with whether it was reached.
  std::string Goals(const ServerRow& row) {
    std::string cell;
    const auto add = [&](const std::string& goal, bool reached, const std::string& measured) {
      cell += fmt::format("{}{}: {}", cell.empty() ? "" : "; ", goal, reached ? "yes" : "no");
      ++goals_;
      if (reached) return;
      ++missed_goals_;
      missed_ += fmt::format("{}{} ({}: {})", missed_.empty() ? "" : ", ", row.id, goal, measured);
    };
    const auto add_ratio = [&](double goal, const std::string& contender, const std::string& name) {
      const double ratio = Ratio(row, contender);
      if (goal > 0 && ratio > 0)
        add(fmt::format("{:.2f}× {}", goal, name), ratio >= goal, FormatRatio(ratio));
    };
    add_ratio(row.goal_redis, kRedis, "Redis");
    // The only place where that ratio is shown.
    add_ratio(row.goal_redis_without_log, kRedisWithoutLog,
              fmt::format("Redis without log ({})", FormatRatio(Ratio(row, kRedisWithoutLog))));
    add_ratio(row.goal_null, kNull, "null");
    if (const double ratio = Retaining(row); ratio > 0) {
      if (row.goal_retaining > 0) {
        add(fmt::format("{:.2f}× with a history ({})", row.goal_retaining, FormatRatio(ratio)),
            ratio >= row.goal_retaining, FormatRatio(ratio));
      } else {
        cell += fmt::format("{}with a history {}", cell.empty() ? "" : "; ", FormatRatio(ratio));
      }
    }
    const double ours = Median(row, kVarve, "p99_us");
    const double theirs = Median(row, kRedis, "p99_us");
    const bool has_latencies = row.kind == RowKind::kClosed || row.kind == RowKind::kOpen;
    // The p99 of an overloaded server is no measure.
    if (has_latencies && ours > 0 && theirs > 0 && !Overloaded(row, kRedis)) {
      add("p99", ours <= theirs, FormatMicros(ours) + " µs of " + FormatMicros(theirs));
    }
    return cell.empty() ? "-" : cell;
  }

  const Samples& samples_;
  const Reasons& reasons_;
  std::vector<std::vector<std::string>> main_ = {
      {"work", "Varve", "Redis", "null server", "Varve / Redis", "Varve / null", "goals"}};
  std::vector<std::vector<std::string>> beside_ = {
      {"work", "Varve", "Redis", "null server", "client busy, at most"}};
  std::vector<std::vector<std::string>> brief_ = {
      {"", "Varve", "Redis", "ratio", "Varve p50 / p99", "Redis p50 / p99"}};
  int goals_ = 0;
  int missed_goals_ = 0;
  std::string missed_;
  std::string near_null_;
  std::string busy_client_;
  std::string history_;
};

}  // namespace

ServerReport ReportServers(const std::vector<ServerRow>& rows, const Samples& samples,
                           const Reasons& reasons) {
  Table table(samples, reasons);
  for (const ServerRow& row : rows) table.Add(row);
  return table.Take();
}

}  // namespace varve::bench
