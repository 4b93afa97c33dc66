#include "db/history/horizons.h"

#include <algorithm>
#include <set>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

// The most points of a horizon. Of more, each two neighbours become one.
constexpr size_t kMostPoints = 256;
// The most generations that the horizon of one namespace keeps: each manifest has them all.
constexpr size_t kMostRetired = 1000;

constexpr auto kSpaceBelow = [](const Horizon& horizon, NamespaceId space) {
  return horizon.space < space;
};

template <typename List>
auto Find(List& horizons, NamespaceId space) {
  const auto place = std::lower_bound(horizons.begin(), horizons.end(), space, kSpaceBelow);
  return place != horizons.end() && place->space == space ? place : horizons.end();
}

void MergePoints(std::vector<HistoryPoint>* points) {
  std::vector<HistoryPoint> merged;
  for (size_t i = 0; i < points->size(); ++i) {
    if (i % 2 == 1) {
      merged.back().last = (*points)[i].last;
      merged.back().bytes += (*points)[i].bytes;
    } else {
      merged.push_back((*points)[i]);
    }
  }
  *points = std::move(merged);
}

void Raise(Horizon* horizon, const HorizonRise& rise, uint64_t written) {
  // What is behind a horizon that has just begun is not in segments yet.
  if (horizon->first > rise.flushed) return;
  std::vector<HistoryPoint>& points = horizon->points;
  const SequenceNumber known = points.empty() ? horizon->first : points.back().last;
  if (written > 0 && rise.flushed > known) points.push_back({rise.flushed, written});
  if (points.size() > kMostPoints) MergePoints(&points);
  if (horizon->limits.time_ms != 0) {
    if (const auto version = rise.version_before(horizon->limits.time_ms))
      horizon->first = std::max(horizon->first, std::min(*version, rise.flushed));
  }
  uint64_t bytes = 0;
  for (const HistoryPoint& point : points) bytes += point.bytes;
  size_t gone = 0;
  while (gone < points.size() && (points[gone].last <= horizon->first ||
                                  (horizon->limits.bytes != 0 && bytes > horizon->limits.bytes))) {
    horizon->first = std::max(horizon->first, points[gone].last);
    bytes -= points[gone++].bytes;
  }
  points.erase(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(gone));
  VARVE_ASSERT(points.empty() || points.front().last > horizon->first);
}

void RaiseTo(SequenceNumber first, Horizon* horizon) {
  horizon->first = std::max(horizon->first, first);
  std::erase_if(horizon->points,
                [&](const HistoryPoint& point) { return point.last <= horizon->first; });
}

// Raises the horizon where its limits alone would keep too much for ever.
void RaiseAbove(const std::vector<RetiredGeneration>& retired, const HorizonRise& rise,
                Horizon* horizon) {
  std::vector<SequenceNumber> flushed;  // when generations of the namespace retired, oldest first
  for (const RetiredGeneration& each : retired) {
    if (each.space == horizon->space && each.retired_at <= rise.flushed &&
        each.retired_at > horizon->first)
      flushed.push_back(each.retired_at);
  }
  if (flushed.size() > kMostRetired) RaiseTo(flushed[flushed.size() - kMostRetired - 1], horizon);
  // Nothing is written to a namespace that is gone, so a limit in bytes is never reached.
  if (horizon->limits.time_ms == 0 && !rise.limits(horizon->space).has_value())
    RaiseTo(rise.flushed, horizon);
}

}  // namespace

KeptVersions::KeptVersions(const std::vector<Horizon>& horizons, const NamespaceTable& namespaces,
                           const std::vector<RetiredGeneration>& retired) {
  if (horizons.empty()) return;
  const auto keep = [this](NamespaceGeneration generation, SequenceNumber from) {
    if (from != kMaxSequence && generation != kNoGeneration) from_.emplace_back(generation, from);
  };
  for (const ManifestNamespace& entry : namespaces.entries())
    keep(entry.generation, HorizonOf(horizons, entry.id));
  for (const RetiredGeneration& each : retired) {
    if (IsKept(each, horizons)) keep(each.generation, HorizonOf(horizons, each.space));
  }
  // The least one of each generation stays: several namespaces may have lived in it.
  std::sort(from_.begin(), from_.end());
  from_.erase(std::unique(from_.begin(), from_.end(),
                          [](const auto& a, const auto& b) { return a.first == b.first; }),
              from_.end());
  for (const auto& [generation, from] : from_) oldest_ = std::min(oldest_, from);
}

SequenceNumber KeptVersions::From(NamespaceGeneration generation) const {
  const auto place = std::lower_bound(
      from_.begin(), from_.end(), std::pair<NamespaceGeneration, SequenceNumber>(generation, 0));
  return place != from_.end() && place->first == generation ? place->second : kMaxSequence;
}

SequenceNumber HorizonOf(const std::vector<Horizon>& horizons, NamespaceId space) {
  const auto horizon = Find(horizons, space);
  return horizon == horizons.end() ? kMaxSequence : horizon->first;
}

std::vector<Horizon> RaiseHorizons(std::vector<Horizon> horizons,
                                   const std::vector<RetiredGeneration>& retired,
                                   const HorizonRise& rise) {
  const std::vector<Horizon> before = horizons;
  for (Horizon& horizon : horizons) {
    if (const std::optional<HistoryLimits> limits = rise.limits(horizon.space))
      horizon.limits = *limits;
    uint64_t written = 0;
    for (const auto& [space, bytes] : rise.written) written += space == horizon.space ? bytes : 0;
    Raise(&horizon, rise, written);
  }
  for (Horizon& horizon : horizons) RaiseAbove(retired, rise, &horizon);
  for (size_t i = 0; i < before.size(); ++i)
    horizons[i].is_whole &= horizons[i].first == before[i].first;
  // A namespace that is gone keeps its limits until nothing of it can be read any more.
  const std::vector<Horizon> raised = horizons;
  std::erase_if(horizons, [&](const Horizon& horizon) {
    if (!horizon.limits.on()) return true;
    return !rise.limits(horizon.space).has_value() &&
           std::none_of(retired.begin(), retired.end(), [&](const RetiredGeneration& each) {
             return each.space == horizon.space && IsKept(each, raised);
           });
  });
  return horizons;
}

void Horizons::Start(std::vector<Horizon> on_disk, const HistoryLimits& limits,
                     const NamespaceTable& namespaces, SequenceNumber flushed) {
  std::set<NamespaceId> was_there;
  for (const Horizon& horizon : on_disk) was_there.insert(horizon.space);
  {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(!started_ && horizons_.empty());
    started_ = true;
    limits_ = limits;
    horizons_ = std::move(on_disk);
  }
  std::vector<NamespaceId> made;
  if (flushed == kNoSequence) {
    for (const ManifestNamespace& entry : namespaces.entries()) made.push_back(entry.id);
  }
  NoteNamespaces(namespaces, flushed, made);
  if (flushed == kNoSequence) return;  // nothing was ever dropped
  absl::MutexLock lock(&mutex_);
  for (const Horizon& horizon : horizons_) {
    if (!was_there.contains(horizon.space)) to_raise_.push_back(horizon.space);
  }
}

void Horizons::NoteReplayed(SequenceNumber last) {
  absl::MutexLock lock(&mutex_);
  for (const NamespaceId space : std::exchange(to_raise_, {})) {
    const auto horizon = Find(horizons_, space);
    VARVE_ASSERT(horizon != horizons_.end());
    RaiseTo(last, &*horizon);
  }
}

void Horizons::NoteNamespaces(const NamespaceTable& namespaces, SequenceNumber at,
                              const std::vector<NamespaceId>& made) {
  absl::MutexLock lock(&mutex_);
  if (!started_) return;
  std::vector<Horizon> begun;
  for (const ManifestNamespace& entry : namespaces.entries()) {
    const std::optional<HistoryLimits> limits = LimitsOfLocked(namespaces, entry.id);
    if (!limits->on() || Find(horizons_, entry.id) != horizons_.end()) continue;
    begun.push_back({.space = entry.id,
                     .first = at,
                     .limits = *limits,
                     .is_whole = std::find(made.begin(), made.end(), entry.id) != made.end()});
  }
  if (begun.empty()) return;
  std::vector<Horizon> all = horizons_;
  all.insert(all.end(), begun.begin(), begun.end());
  std::sort(all.begin(), all.end(),
            [](const Horizon& a, const Horizon& b) { return a.space < b.space; });
  horizons_ = std::move(all);
}

std::optional<HistoryLimits> Horizons::LimitsOf(const NamespaceTable& namespaces,
                                                NamespaceId space) const {
  absl::MutexLock lock(&mutex_);
  return LimitsOfLocked(namespaces, space);
}

std::optional<HistoryLimits> Horizons::LimitsOfLocked(const NamespaceTable& namespaces,
                                                      NamespaceId space) const {
  if (!namespaces.Generation(space).has_value()) return std::nullopt;
  const NamespaceDescription* const description = namespaces.Description(space);
  if (description != nullptr && description->options.history.has_value())
    return description->options.history;
  return limits_;
}

bool Horizons::any() const {
  absl::MutexLock lock(&mutex_);
  return !horizons_.empty();
}

SequenceNumber Horizons::Of(NamespaceId space) const {
  absl::MutexLock lock(&mutex_);
  return HorizonOf(horizons_, space);
}

bool Horizons::IsWhole(NamespaceId space) const {
  absl::MutexLock lock(&mutex_);
  const auto horizon = Find(horizons_, space);
  return horizon != horizons_.end() && horizon->is_whole;
}

std::vector<Horizon> Horizons::All() const {
  absl::MutexLock lock(&mutex_);
  return horizons_;
}

void Horizons::Install(const std::vector<Horizon>& before, std::vector<Horizon> raised) {
  absl::MutexLock lock(&mutex_);
  for (const Horizon& now : horizons_) {
    if (Find(before, now.space) == before.end()) raised.push_back(now);
  }
  std::sort(raised.begin(), raised.end(),
            [](const Horizon& a, const Horizon& b) { return a.space < b.space; });
  horizons_ = std::move(raised);
}

}  // namespace varve
