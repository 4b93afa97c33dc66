#include "tools/backup/restore_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "db/history/horizons.h"
#include "db/history/time_map.h"
#include "db/namespaces/namespace_table.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve {
namespace {

// A namespace as it was at a version.
struct PastSpace {
  enum class State : uint8_t { kThere, kNotThere, kNotKept };
  NamespaceDescription space;
  bool is_present = false;  // in the backup
  State state = State::kNotThere;
  SequenceNumber first = kMaxSequence;  // the oldest version of which it can be read
};

// Finds out how the namespaces of a backup were at a version.
class Past {
 public:
  Past(const BackupDescription& backup, const Manifest& manifest, absl::Span<const TimeMark> marks)
      : backup_(backup), manifest_(manifest), present_(manifest) {
    for (const TimeMark& mark : marks) times_.Add(mark);
  }

  // Returns the version that is wanted.
  absl::StatusOr<SequenceNumber> Find(const RestoreTarget& target) const {
    if (target.at_version) {
      if (*target.at_version <= backup_.version) return *target.at_version;
      return absl::OutOfRangeError(
          fmt::format("version {} is not in backup {}, which ends with version {}",
                      *target.at_version, backup_.id, backup_.version));
    }
    if (!target.at_time_ms) return backup_.version;
    if (!manifest_.has_history) return NoPlaceForHistory();
    if (*target.at_time_ms > backup_.sealed_ms) {
      return absl::OutOfRangeError(fmt::format(
          "what was written up to {} is not in backup {}, which was sealed at {}",
          ShownInstant(*target.at_time_ms), backup_.id, ShownInstant(backup_.sealed_ms)));
    }
    const std::optional<SequenceNumber> version =
        times_.VersionAt(*target.at_time_ms, backup_.version);
    if (version) return *version;
    const std::optional<SequenceNumber> first = times_.FirstVersion();
    if (!first) return absl::OutOfRangeError("the backup does not know the times of its versions");
    return absl::OutOfRangeError(fmt::format(
        "backup {} does not know what its store held at {}; the earliest time is {}, version {}",
        backup_.id, ShownInstant(*target.at_time_ms), ShownInstant(*times_.InstantOf(*first)),
        *first));
  }

  uint64_t InstantOf(SequenceNumber version) const {
    if (version == backup_.version) return backup_.instant_ms;
    return times_.InstantOf(version).value_or(0);
  }

  // Returns all namespaces that were there at the version, or are there now.
  std::vector<PastSpace> SpacesAt(SequenceNumber version) const {
    std::set<NamespaceId> ids;
    for (const ManifestNamespace& entry : manifest_.namespaces) ids.insert(entry.id);
    for (const RetiredGeneration& each : manifest_.retired) ids.insert(each.space);
    const NamespaceTable then = TableAt(version);
    std::vector<PastSpace> spaces;
    for (const NamespaceId id : ids) {
      PastSpace past;
      past.is_present = present_.Generation(id).has_value();
      if (!Describe(id, version, &past)) continue;
      const auto horizon = std::find_if(manifest_.horizons.begin(), manifest_.horizons.end(),
                                        [id](const Horizon& each) { return each.space == id; });
      const bool is_kept = horizon != manifest_.horizons.end();
      // Without its instant nobody can say which keys of a version had expired.
      if (is_kept)
        past.first = std::max(horizon->first, times_.FirstVersion().value_or(kMaxSequence));
      if (version >= past.first) {
        past.state = then.Generation(id).has_value() ? PastSpace::State::kThere
                                                     : PastSpace::State::kNotThere;
      } else {
        const bool begins_later = is_kept && horizon->is_whole && version < horizon->first;
        past.state = begins_later ? PastSpace::State::kNotThere : PastSpace::State::kNotKept;
      }
      spaces.push_back(std::move(past));
    }
    return spaces;
  }

  absl::Status NotKept(const PastSpace& past, SequenceNumber version) const {
    const std::string name =
        past.space.name.empty() ? fmt::to_string(past.space.id) : past.space.name;
    if (past.first == kMaxSequence) {
      return absl::FailedPreconditionError(fmt::format(
          "namespace '{}' keeps no history, so it can't be restored as of version {}; of it, "
          "backup {} has version {} ({}) alone",
          name, version, backup_.id, backup_.version, ShownInstant(backup_.instant_ms)));
    }
    return absl::OutOfRangeError(
        fmt::format("namespace '{}' can't be restored as of version {}: in backup {} its earliest "
                    "version is {} "
                    "({})",
                    name, version, backup_.id, past.first, ShownInstant(InstantOf(past.first))));
  }

 private:
  NamespaceTable TableAt(SequenceNumber version) const {
    NamespaceTable table = present_;
    for (auto retired = manifest_.retired.rbegin();
         retired != manifest_.retired.rend() && retired->retired_at > version; ++retired) {
      retired->generation == kNoGeneration ? table.Remove(retired->space)
                                           : table.Set(retired->space, retired->generation);
    }
    return table;
  }

  // Returns false if nobody knows the namespace any more.
  bool Describe(NamespaceId id, SequenceNumber version, PastSpace* past) const {
    if (past->is_present) {
      const NamespaceDescription* const found = present_.Description(id);
      past->space = found == nullptr ? NamespaceDescription{.id = id} : *found;
      return true;
    }
    for (const RetiredGeneration& each : manifest_.retired) {  // the oldest one counts
      if (each.space != id || each.dropped == nullptr || each.retired_at <= version) continue;
      past->space = *each.dropped;
      return true;
    }
    return false;
  }

  const BackupDescription& backup_;
  const Manifest& manifest_;
  const NamespaceTable present_;
  TimeMap times_;
};

bool IsNumber(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool HasName(const NamespaceDescription& space, std::string_view name) {
  return IsNumber(name) ? space.name.empty() && fmt::to_string(space.id) == name
                        : !space.name.empty() && space.name == name;
}

absl::Status NoSuchSpace(const std::vector<PastSpace>& spaces, std::string_view name,
                         SequenceNumber version) {
  std::string others;
  for (const PastSpace& past : spaces) {
    if (past.state == PastSpace::State::kNotThere) continue;
    others +=
        fmt::format("{}{}", others.empty() ? "" : ", ",
                    past.space.name.empty() ? fmt::to_string(past.space.id) : past.space.name);
  }
  return absl::NotFoundError(
      fmt::format("version {} has no namespace '{}'; it has {}", version, name, others));
}

// Limits that a namespace without limits of its own has are those of the store.
HistoryLimits LimitsOfStore(const Manifest& manifest) {
  for (const Horizon& horizon : manifest.horizons) {
    const bool is_present =
        std::any_of(manifest.namespaces.begin(), manifest.namespaces.end(),
                    [&](const ManifestNamespace& entry) { return entry.id == horizon.space; });
    const auto described =
        std::find_if(manifest.descriptions.begin(), manifest.descriptions.end(),
                     [&](const NamespaceDescription& space) { return space.id == horizon.space; });
    const bool has_own =
        described != manifest.descriptions.end() && described->options.history.has_value();
    if (is_present && !has_own) return horizon.limits;
  }
  return {};
}

absl::Status AddStep(const Past& past, const PastSpace& each, RestorePlan* plan) {
  if (each.state == PastSpace::State::kNotKept) return past.NotKept(each, plan->version);
  if (each.state == PastSpace::State::kThere) {
    (each.is_present ? plan->rewound : plan->brought_back).push_back(each.space);
  } else if (each.is_present) {
    if (each.space.id == kDefaultNamespace) return past.NotKept(each, plan->version);
    plan->dropped.push_back(each.space);
  }
  return absl::OkStatus();
}

// One that comes back may have left its name to another one.
absl::Status CheckNames(const RestorePlan& plan) {
  for (const NamespaceDescription& back : plan.brought_back) {
    for (const NamespaceDescription& other : plan.rewound) {
      if (back.name.empty() || back.name != other.name) continue;
      return absl::FailedPreconditionError(
          fmt::format("namespace '{}' was dropped since version {}, and another one was given its "
                      "name: restore one of them alone",
                      back.name, plan.version));
    }
  }
  return absl::OkStatus();
}

template <typename Elements, typename IsOther>
void KeepOnly(Elements* elements, const IsOther& is_other) {
  elements->erase(std::remove_if(elements->begin(), elements->end(), is_other), elements->end());
}

void DropOthers(NamespaceId only, Manifest* manifest) {
  KeepOnly(&manifest->namespaces,
           [only](const ManifestNamespace& entry) { return entry.id != only; });
  KeepOnly(&manifest->descriptions,
           [only](const NamespaceDescription& space) { return space.id != only; });
  KeepOnly(&manifest->horizons, [only](const Horizon& horizon) { return horizon.space != only; });
  KeepOnly(&manifest->retired,
           [only](const RetiredGeneration& each) { return each.space != only; });
  // Every store has database 0; here it is empty.
  if (only != kDefaultNamespace) {
    manifest->namespaces.insert(manifest->namespaces.begin(),
                                {kDefaultNamespace, manifest->next_generation++});
  }
}

}  // namespace

absl::StatusOr<RestorePlan> PlanRestore(const BackupDescription& backup, const Manifest& manifest,
                                        absl::Span<const TimeMark> marks,
                                        const RestoreTarget& target) {
  if (target.at_version && target.at_time_ms) {
    return absl::InvalidArgumentError(
        "a restore goes to a version or to a time: name one of the two");
  }
  const Past past(backup, manifest, marks);
  RestorePlan plan;
  VARVE_ASSIGN_OR_RETURN(plan.version, past.Find(target));
  plan.rewinds = plan.version != backup.version;
  plan.instant_ms = past.InstantOf(plan.version);
  plan.history = LimitsOfStore(manifest);
  std::vector<PastSpace> spaces = past.SpacesAt(plan.version);
  if (!plan.rewinds) {
    // All that is there is there.
    KeepOnly(&spaces, [](const PastSpace& each) { return !each.is_present; });
    for (PastSpace& each : spaces) each.state = PastSpace::State::kThere;
  }
  if (target.name_space) {
    const auto found = std::find_if(spaces.begin(), spaces.end(), [&](const PastSpace& each) {
      return each.state != PastSpace::State::kNotThere && HasName(each.space, *target.name_space);
    });
    if (found == spaces.end()) return NoSuchSpace(spaces, *target.name_space, plan.version);
    plan.only = found->space.id;
  }
  if (!plan.rewinds) return plan;
  for (const PastSpace& each : spaces) {
    if (!plan.only || each.space.id == *plan.only)
      VARVE_RETURN_IF_ERROR(AddStep(past, each, &plan));
  }
  VARVE_RETURN_IF_ERROR(CheckNames(plan));
  return plan;
}

absl::Status MakeManifestOfRestored(const RestorePlan& plan, Manifest* manifest) {
  // So that many a restored store can be backed up and restored again.
  if (manifest->flushed_sequence > kMaxSequence / 2) {
    return absl::FailedPreconditionError(fmt::format(
        "the store is at version {}: no versions are left beyond it", manifest->flushed_sequence));
  }
  std::random_device device;
  manifest->store_id = uint64_t{device()} << 32 | device();
  if (manifest->has_history) manifest->history_id = NewHistoryId();
  manifest->flushed_sequence += kRestoredVersionsAhead;
  manifest->log_ends.clear();
  manifest->clean_end = false;
  manifest->changes = {};
  manifest->feeds.clear();
  if (plan.only) DropOthers(*plan.only, manifest);
  return absl::OkStatus();
}

std::string ShownInstant(uint64_t instant_ms) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                          absl::FromUnixMillis(static_cast<int64_t>(instant_ms)),
                          absl::UTCTimeZone());
}

}  // namespace varve
