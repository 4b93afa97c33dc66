#include "unit-tests/prove/report.h"

#include <algorithm>

#include "fmt/format.h"

namespace varve::prove {
namespace {

constexpr const char* kRow = "{:<34} {:>7} {:>13} {:>10} {:>6} {:>6}  {}\n";

// 1234567 as 1,234,567.
std::string Grouped(uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

// What of the acknowledged writes the mode may lose.
std::string Taken(const Figures& figures) {
  std::string remark =
      fmt::format("{} more were in the time that this mode may lose; {} of them gone",
                  Grouped(figures.released), Grouped(figures.taken));
  if (figures.taken > 0)
    remark += fmt::format(", the oldest {} ms old", figures.oldest_taken.count());
  return remark;
}

}  // namespace

void Report::AddRow(const std::string& what, const Figures& figures, const std::string& remark) {
  rows_.push_back(fmt::format(kRow, what, Grouped(figures.cycles), Grouped(figures.acknowledged),
                              Grouped(figures.shown), Grouped(figures.lost), Grouped(figures.torn),
                              remark));
  longest_start_ = std::max(longest_start_, figures.longest_start);
  for (const std::string& complaint : figures.complaints)
    complaints_.push_back(what + ": " + complaint);
}

void Report::AddMissing(const std::string& what, const absl::Status& why) {
  notes_.push_back(fmt::format("not done here: {} ({})\n", what, std::string(why.message())));
  if (!absl::IsUnavailable(why)) complaints_.push_back(what + ": " + why.ToString());
}

void Report::AddKills(const Figures& figures) { AddRow("kill -9 under load, all modes", figures); }

void Report::AddCuts(const absl::StatusOr<PowerFigures>& figures) {
  if (!figures.ok()) return AddMissing("power cuts", figures.status());
  AddRow("power cut, --sync=always", figures->always);
  AddRow("power cut, --sync=everysec", figures->every_second, Taken(figures->every_second));
  AddRow("power cut, --sync=no", figures->none, Taken(figures->none));
}

void Report::AddLosses(const LossFigures& figures) {
  AddRow("machine lost, back from archive", figures.archives);
  AddRow("machine lost, back from backup", figures.backups,
         fmt::format("{} more came after the backup had begun; {} of them gone",
                     Grouped(figures.backups.released), Grouped(figures.backups.taken)));
}

void Report::AddFailovers(const FailoverFigures& with_sync, const FailoverFigures& without) {
  const auto figures_of = [](const FailoverFigures& each) {
    return Figures{.cycles = each.failovers,
                   .acknowledged = each.acknowledged,
                   .shown = each.reads,
                   .complaints = each.complaints};
  };
  const std::vector<std::chrono::milliseconds>& gaps = with_sync.gaps;
  AddRow("failover, --sync-replicas=1", figures_of(with_sync),
         gaps.empty()
             ? ""
             : fmt::format("no write was acknowledged for {} ms in the middle, {} ms at most",
                           gaps[gaps.size() / 2].count(), gaps.back().count()));
  AddRow("failover, --sync-replicas=0", figures_of(without),
         fmt::format("{} of them are in diverged files alone", Grouped(without.diverged)));
}

void Report::AddFollower(const FollowerFigures& figures) {
  AddRow("kill -9 of primary and follower",
         {.cycles = figures.kills,
          .acknowledged = figures.acknowledged,
          .shown = figures.reads,
          .complaints = figures.complaints},
         fmt::format("{} cuts; {} keys compared at a version", Grouped(figures.cuts),
                     Grouped(figures.compared)));
}

void Report::AddCalls(const absl::StatusOr<FailureFigures>& figures) {
  if (!figures.ok()) return AddMissing("failing fdatasync, fsync and pwrite", figures.status());
  AddRow(figures->power_was_cut ? "failing fdatasync/fsync/pwrite, cut"
                                : "failing fdatasync/fsync/pwrite",
         figures->figures);
  notes_.push_back(fmt::format(
      "{} calls failed with EIO: {} servers refused writes for good and said why, {} did not start "
      "and said why\n",
      Grouped(figures->failed_calls), Grouped(figures->refusing), Grouped(figures->failed_starts)));
}

void Report::AddFlips(const absl::StatusOr<FlipFigures>& figures) {
  if (!figures.ok()) return AddMissing("bit flips", figures.status());
  rows_.push_back(fmt::format(
      kRow, "one bit flipped, everything read", Grouped(figures->flips), "-", "-",
      Grouped(figures->unnoticed), "-",
      fmt::format("{} found ({} at the start, {} by readers), {} harmless",
                  Grouped(figures->refused + figures->reported), Grouped(figures->refused),
                  Grouped(figures->reported), Grouped(figures->harmless))));
  notes_.push_back(
      fmt::format("client_main verify, offline, found {} of the {} flipped bits; the others lie "
                  "where the log has "
                  "nothing that is needed\n",
                  Grouped(figures->verified), Grouped(figures->flips)));
  for (const std::string& complaint : figures->complaints)
    complaints_.push_back("bit flip: " + complaint);
}

std::string Report::Text() const {
  std::string text =
      fmt::format(kRow, "what was done", "cycles", "acknowledged", "shown", "lost", "torn", "");
  for (const std::string& row : rows_) text += row;
  for (const std::string& note : notes_) text += note;
  const auto took =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
  text += fmt::format("{} s; the longest start after a crash took {} ms\n", took.count(),
                      longest_start_.count());
  for (const std::string& complaint : complaints_) text += "WRONG: " + complaint + "\n";
  text +=
      complaints_.empty() ? "Nothing that was promised is missing.\n" : "A promise was broken.\n";
  // A row without a remark ends in blanks.
  for (size_t at = text.find(" \n"); at != std::string::npos;
       at = text.find(" \n", at > 0 ? at - 1 : 0))
    text.erase(at, 1);
  return text;
}

}  // namespace varve::prove
