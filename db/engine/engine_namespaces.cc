// Engine: which namespaces there are, cloning them, and their quotas.
//
// The rule: a batch is refused if, with it, a namespace would hold more keys, or more bytes of keys
// and values, than its quota, and the batch itself adds to them. Exactly so, also among writers at
// the same time; what was there before a quota was set, or came by a swap, stays. Reads, deletes,
// and writes that make a namespace smaller go on.
//
// The cost: writes into namespaces with a quota go one at a time through quota_mutex_. Each
// generation has an upper bound, to which a batch adds all that it writes, as if each key was new.
// Only when that reaches the quota is it looked up what the batch replaces; only when that doesn't
// fit either are the keys counted (engine_count.cc), which takes up what was deleted. Other
// namespaces pay one look at a flag.
#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "db/engine/engine.h"
#include "db/engine/lookup.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

absl::Status Full(const NamespaceDescription& space, std::string_view what, uint64_t has,
                  uint64_t most) {
  const std::string name = space.name.empty() ? fmt::format("database {}", space.id)
                                              : fmt::format("namespace '{}'", space.name);
  return NamespaceIsFull(
      fmt::format("{} is full: it holds {} of {} {} that its quota allows; delete some or raise it",
                  name, has, most, what));
}

bool Fits(int64_t has, int64_t added, uint64_t most) {
  return most == 0 || added <= 0 ||
         static_cast<uint64_t>(std::max<int64_t>(has + added, 0)) <= most;
}

bool Fits(const KeyTally& has, const KeyTally& added, const NamespaceOptions& options) {
  return Fits(has.keys, added.keys, options.max_keys) &&
         Fits(has.bytes, added.bytes, options.max_bytes);
}

bool IsWriteTo(const Commit::Operation& operation, NamespaceGeneration generation) {
  const RecordKind kind = operation.record.kind;
  return (kind == RecordKind::kValue || kind == RecordKind::kTombstone) &&
         GenerationOf(operation.record.key) == generation;
}

}  // namespace

absl::StatusOr<NamespaceList> Engine::NamespacesInside() const {
  NamespaceList list;
  SequenceNumber changed;
  {
    const Published<SuperVersion>::Pin state = state_.Acquire();
    for (const ManifestNamespace& entry : state->namespaces.entries()) {
      const NamespaceDescription* const described = state->namespaces.Description(entry.id);
      list.namespaces.push_back(described != nullptr ? *described
                                                     : NamespaceDescription{.id = entry.id});
    }
    list.next_id = state->namespaces.next_named();
    changed = state->namespaces_changed;
  }
  list.durable_after = GateOf(changed);
  return list;
}

bool Engine::HasNamespace(NamespaceId space) const {
  return state_.Acquire()->namespaces.Generation(space).has_value();
}

uint64_t Engine::UsualExpiryInside(NamespaceId space) const {
  const Published<SuperVersion>::Pin state = state_.Acquire();
  const NamespaceDescription* const description = state->namespaces.Description(space);
  if (description == nullptr || description->options.default_expiry_ms == 0) return kNoExpiry;
  constexpr uint64_t kLatest = std::numeric_limits<int64_t>::max();  // as replies tell it
  const uint64_t now_ms = std::min(clock_.NowMillis(), kLatest);
  return now_ms + std::min(description->options.default_expiry_ms, kLatest - now_ms);
}

NamespaceGeneration Engine::NewGeneration() {
  NamespaceGeneration next = next_generation_.load();
  while (next < kExpiryGeneration && !next_generation_.compare_exchange_weak(next, next + 1)) {
  }
  return next < kExpiryGeneration ? next : kNoGeneration;
}

std::vector<NamespaceGeneration> Engine::GenerationsLeftAfterLocked(SequenceNumber sequence) const {
  std::vector<NamespaceGeneration> generations;
  for (const LeftGeneration& left : left_generations_) {
    if (left.left_at > sequence) generations.push_back(left.generation);
  }
  return generations;
}

std::function<bool(NamespaceGeneration)> Engine::LiveGenerations(const SnapshotList::Held& held,
                                                                 NamespaceBases* bases) const {
  // A snapshot that is taken later sees nothing older than what was visible then.
  const SequenceNumber oldest_reader =
      held.sequences.empty() ? held.visible : held.sequences.front();
  absl::MutexLock lock(&commit_mutex_);
  const NamespaceTable& namespaces = present_->namespaces;
  const std::vector<NamespaceGeneration> left =
      GenerationsLeftAfterLocked(std::min(oldest_reader, log_->durable_sequence()));
  *bases = namespaces.BasesUnder(left);
  std::unordered_set<NamespaceGeneration> live(left.begin(), left.end());
  live.insert(kExpiryGeneration);
  for (const ManifestNamespace& space : namespaces.entries()) live.insert(space.generation);
  for (const NamespaceBase& base : bases->all()) live.insert(base.base);
  return [live = std::move(live)](NamespaceGeneration generation) {
    return live.contains(generation);
  };
}

// Not while what has expired is removed: an entry of the index must not go for the source's key
// alone. Whoever has the turn may be waiting for that, so it isn't waited for meanwhile.
absl::StatusOr<CommitResult> Engine::SubmitClone(const WriteOptions& options, WriteBatch* batch) {
  WriteOptions at_once = options;
  at_once.waits_for_exclusive_write = false;
  for (;;) {
    {
      absl::MutexLock lock(&sweep_mutex_);
      bool limited = false;
      absl::StatusOr<CommitResult> result = TrySubmit(at_once, batch, nullptr, &limited);
      if (result.ok()) CountAtCut();
      if (!options.waits_for_exclusive_write || !absl::IsCancelled(result.status())) return result;
    }
    absl::MutexLock lock(&commit_mutex_);
    WaitForTurn(options.exclusive_write);
  }
}

bool Engine::MustCheckQuotas(const SuperVersion& state, const Commit& commit,
                             const SequenceNumber* checked) {
  if (!commit.adds_data()) return false;
  if (checked != nullptr) return *checked != state.namespaces_changed;
  NamespaceId last = kSelectedNamespace;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.space == std::exchange(last, operation.space)) continue;
    const NamespaceDescription* const space = state.namespaces.Description(operation.space);
    if (space != nullptr && space->options.has_quota()) return true;
  }
  return false;
}

absl::StatusOr<CommitResult> Engine::SubmitWithinQuotas(const WriteOptions& options,
                                                        WriteBatch* batch) {
  for (bool swept = false;;) {
    {
      absl::MutexLock lock(&commit_mutex_);
      WaitForTurn(options.exclusive_write);
    }
    absl::MutexLock lock(&quota_mutex_);
    SequenceNumber checked = kNoSequence;
    KeyTallies added;
    const uint64_t expired = counters_.expired.load();  // before the look, as others remove, too
    const absl::Status fits = CheckQuotas(batch, &checked, &added);
    if (IsNamespaceFull(fits) && !std::exchange(swept, true)) {
      // What has expired counts only where it can't be removed. Not while a Commit is there: a
      // thread has one at a time.
      SweepAll().IgnoreError();
      if (counters_.expired.load() != expired) continue;
    }
    VARVE_RETURN_IF_ERROR(fits);
    KeyTallies bounds = quota_bounds_;
    bounds.Add(added);
    bool changed = false;  // the namespaces meanwhile, or whose turn it is
    absl::StatusOr<CommitResult> result = TrySubmit(options, batch, &checked, &changed);
    if (changed) {
      swept = false;
      continue;
    }
    if (result.ok()) quota_bounds_ = std::move(bounds);
    return result;
  }
}

absl::Status Engine::CheckQuotas(WriteBatch* batch, SequenceNumber* checked, KeyTallies* added) {
  const std::shared_ptr<const SuperVersion> state = state_.share();
  const NamespaceTable& namespaces = state->namespaces;
  *checked = state->namespaces_changed;
  if (std::exchange(quota_bounds_at_, *checked) != *checked) quota_bounds_ = KeyTallies();
  Commit commit(batch);
  VARVE_RETURN_IF_ERROR(
      commit.Resolve(namespaces, [this](NamespaceId) { return NewGeneration(); }));
  std::vector<std::pair<NamespaceId, NamespaceGeneration>> seen;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.record.kind != RecordKind::kValue) continue;
    const std::pair place(operation.space, GenerationOf(operation.record.key));
    if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
    seen.push_back(place);
    const NamespaceDescription* const space = namespaces.Description(place.first);
    if (space == nullptr || !space->options.has_quota()) continue;
    const bool is_new = !namespaces.Holds(place.second);  // it begins with this batch
    VARVE_RETURN_IF_ERROR(CheckQuota(commit, *space, place.second, is_new, added));
  }
  return absl::OkStatus();
}

absl::Status Engine::CheckQuota(const Commit& commit, const NamespaceDescription& space,
                                NamespaceGeneration generation, bool is_new, KeyTallies* added) {
  KeyTally most;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.record.kind == RecordKind::kValue && IsWriteTo(operation, generation)) {
      most += TallyOf(operation.record);
    }
  }
  bool is_counted = is_new;
  if (!is_new && !quota_bounds_.Knows(generation)) {
    VARVE_RETURN_IF_ERROR(CountForQuota(generation));
    is_counted = true;
  }
  if (Fits(quota_bounds_.Of(generation), most, space.options)) {
    added->Add(generation, most);
    return absl::OkStatus();
  }
  // As of now: what is removed before the keys are counted must not be taken for something that the
  // batch replaces.
  VARVE_ASSIGN_OR_RETURN(KeyTally change, ChangeOf(commit, generation));
  if (!Fits(quota_bounds_.Of(generation), change, space.options) && !is_counted) {
    VARVE_RETURN_IF_ERROR(CountForQuota(generation));
    VARVE_ASSIGN_OR_RETURN(change, ChangeOf(commit, generation));
  }
  const KeyTally has = quota_bounds_.Of(generation);
  if (!Fits(has.keys, change.keys, space.options.max_keys)) {
    return Full(space, "keys", static_cast<uint64_t>(has.keys), space.options.max_keys);
  }
  if (!Fits(has.bytes, change.bytes, space.options.max_bytes)) {
    return Full(space, "bytes", static_cast<uint64_t>(has.bytes), space.options.max_bytes);
  }
  added->Add(generation, change);
  return absl::OkStatus();
}

absl::Status Engine::CountForQuota(NamespaceGeneration generation) {
  absl::MutexLock lock(&count_mutex_);
  VARVE_ASSIGN_OR_RETURN(const KeyTally all, CountAll(NewCountPoint(), generation));
  quota_bounds_.Add(generation, -quota_bounds_.Of(generation));
  quota_bounds_.Add(generation, all);
  return absl::OkStatus();
}

absl::StatusOr<KeyTally> Engine::ChangeOf(const Commit& commit,
                                          NamespaceGeneration generation) const {
  VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead({.space = kExpirySpace}));
  std::unordered_map<std::string_view, KeyTally> written;  // by key: what it is after the batch
  KeyTally change;
  for (const Commit::Operation& operation : commit.operations()) {
    if (!IsWriteTo(operation, generation)) continue;
    const auto [entry, is_first] = written.try_emplace(operation.record.key);
    if (is_first) {
      Lookup lookup(generation, UserKeyOf(operation.record.key));
      VARVE_ASSIGN_OR_RETURN(const bool is_live, FindLive(*point.state, point.sequence, &lookup));
      const uint64_t expiry_ms = lookup.record.expiry_ms;
      // Who replaces what has expired adds a key, whether or not it is still on disk.
      if (is_live && (expiry_ms == 0 || expiry_ms > clock_.NowMillis()))
        change += -TallyOf(lookup.record);
    }
    entry->second =
        operation.record.kind == RecordKind::kValue ? TallyOf(operation.record) : KeyTally();
  }
  for (const auto& [key, after] : written) change += after;
  return change;
}

}  // namespace varve
