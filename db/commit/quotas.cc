#include "db/commit/quotas.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/version/lookup.h"
#include "db/version/read_point.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

absl::Status Full(const NamespaceDescription& space, NamespaceQuota::Of of, uint64_t has,
                  uint64_t most) {
  const std::string name = space.name.empty() ? fmt::format("database {}", space.id)
                                              : fmt::format("namespace '{}'", space.name);
  return NamespaceIsFull(
      {.space = space.id, .of = of},
      fmt::format("{} is full: it holds {} of {} {} that its quota allows; delete some or raise it",
                  name, has, most, of == NamespaceQuota::Of::kKeys ? "keys" : "bytes"));
}

bool Fits(int64_t has, int64_t added, uint64_t most) {
  return most == 0 || added <= 0 ||
         static_cast<uint64_t>(std::max<int64_t>(has + added, 0)) <= most;
}

bool Fits(const KeyCounts& has, const KeyCounts& added, const NamespaceOptions& options) {
  return Fits(has.keys, added.keys, options.max_keys) &&
         Fits(has.bytes, added.bytes, options.max_bytes);
}

bool IsWriteTo(const Commit::Operation& operation, NamespaceGeneration generation) {
  const RecordKind kind = operation.record.kind;
  return (kind == RecordKind::kValue || kind == RecordKind::kTombstone) &&
         GenerationOf(operation.record.key) == generation;
}

}  // namespace

absl::StatusOr<CommitResult> Quotas::Submit(const WriteOptions& options, WriteBatch* batch) {
  for (bool swept = false;;) {
    parts_.pipeline->exclusive_writes().AwaitOthers(options.exclusive_write);
    absl::MutexLock lock(&quota_mutex_);
    CheckedBatch checked;
    GenerationKeyCounts added;
    const uint64_t expired =
        parts_.sweeper->expired_keys();  // before the look, as others remove, too
    const absl::Status fits = Check(batch, &checked, &added);
    if ((IsNamespaceFull(fits) || IsStoreFull(fits)) && !std::exchange(swept, true)) {
      // What has expired counts only where it can't be removed. Not while a Commit is there: a
      // thread has one at a time.
      parts_.sweeper->SweepAll().IgnoreError();
      if (parts_.sweeper->expired_keys() != expired) continue;
    }
    VARVE_RETURN_IF_ERROR(fits);
    GenerationKeyCounts bounds = bounds_;
    bounds.Add(added);
    VARVE_ASSERT(bounds_at_ == checked.namespaces_changed);
    bool changed = false;  // the namespaces meanwhile, or who writes exclusively
    absl::StatusOr<CommitResult> result =
        parts_.pipeline->TrySubmit(options, batch, &checked, &changed);
    if (changed) {
      swept = false;
      continue;
    }
    if (result.ok()) bounds_ = std::move(bounds);
    return result;
  }
}

absl::Status Quotas::Check(WriteBatch* batch, CheckedBatch* checked, GenerationKeyCounts* added) {
  const std::shared_ptr<const SuperVersion> state = parts_.versions->Share();
  const NamespaceTable& namespaces = state->namespaces;
  checked->namespaces_changed = state->namespaces_changed;
  if (std::exchange(bounds_at_, state->namespaces_changed) != state->namespaces_changed)
    bounds_ = GenerationKeyCounts();
  Commit commit(batch);
  VARVE_RETURN_IF_ERROR(
      commit.Resolve(namespaces, [this](NamespaceId) { return parts_.new_generation(); }));
  std::vector<std::pair<NamespaceId, NamespaceGeneration>> seen;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.record.kind != RecordKind::kValue) continue;
    const std::pair place(operation.space, GenerationOf(operation.record.key));
    if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;
    seen.push_back(place);
    const NamespaceDescription* const space = namespaces.Description(place.first);
    if (space == nullptr || !space->options.has_quota()) continue;
    const bool is_new = !namespaces.Holds(place.second);  // it begins with this batch
    VARVE_RETURN_IF_ERROR(CheckOne(commit, *space, place.second, is_new, added));
  }
  return CheckData(commit, checked);
}

absl::Status Quotas::CheckData(const Commit& commit, CheckedBatch* checked) {
  DataBound* const bound = parts_.data_bound;
  checked->added_bytes = static_cast<int64_t>(commit.record_size());
  if (bound == nullptr || bound->Fits(commit.record_size())) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(checked->added_bytes, BytesOf(commit));
  if (checked->added_bytes <= 0 || bound->Fits(static_cast<uint64_t>(checked->added_bytes)))
    return absl::OkStatus();
  for (;;) {
    // Before the look at what the batch replaces, as others may remove that meanwhile.
    VARVE_ASSIGN_OR_RETURN(const uint64_t bytes, bound->CountNow());
    VARVE_ASSIGN_OR_RETURN(checked->added_bytes, BytesOf(commit));
    const auto added = static_cast<uint64_t>(std::max<int64_t>(checked->added_bytes, 0));
    if (added == 0 || bound->Fits(added)) return absl::OkStatus();
    if (bytes + added > bound->limit()) {
      return StoreIsFull(fmt::format(
          "the store is full: its keys and values have {} of {} bytes that its limit allows, and "
          "the write adds {}; delete some or raise it",
          bytes, bound->limit(), added));
    }
    // Others have written since the count.
  }
}

absl::StatusOr<int64_t> Quotas::BytesOf(const Commit& commit) const {
  std::vector<NamespaceGeneration> seen;
  int64_t bytes = 0;
  for (const Commit::Operation& operation : commit.operations()) {
    const NamespaceGeneration generation = GenerationOf(operation.record.key);
    if (!IsWriteTo(operation, generation)) continue;
    if (std::find(seen.begin(), seen.end(), generation) != seen.end()) continue;
    seen.push_back(generation);
    VARVE_ASSIGN_OR_RETURN(const KeyCounts change, ChangeOf(commit, generation));
    bytes += change.bytes;
  }
  return bytes;
}

absl::Status Quotas::CheckOne(const Commit& commit, const NamespaceDescription& space,
                              NamespaceGeneration generation, bool is_new,
                              GenerationKeyCounts* added) {
  KeyCounts most;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.record.kind == RecordKind::kValue && IsWriteTo(operation, generation)) {
      most += CountsOf(operation.record);
    }
  }
  bool is_counted = is_new;
  if (!is_new && !bounds_.Knows(generation)) {
    VARVE_RETURN_IF_ERROR(Count(generation));
    is_counted = true;
  }
  if (Fits(bounds_.Of(generation), most, space.options)) {
    added->Add(generation, most);
    return absl::OkStatus();
  }
  // As of now: what is removed before the keys are counted must not be taken for something that the
  // batch replaces.
  VARVE_ASSIGN_OR_RETURN(KeyCounts change, ChangeOf(commit, generation));
  if (!Fits(bounds_.Of(generation), change, space.options) && !is_counted) {
    VARVE_RETURN_IF_ERROR(Count(generation));
    VARVE_ASSIGN_OR_RETURN(change, ChangeOf(commit, generation));
  }
  const KeyCounts has = bounds_.Of(generation);
  if (!Fits(has.keys, change.keys, space.options.max_keys)) {
    return Full(space, NamespaceQuota::Of::kKeys, static_cast<uint64_t>(has.keys),
                space.options.max_keys);
  }
  if (!Fits(has.bytes, change.bytes, space.options.max_bytes)) {
    return Full(space, NamespaceQuota::Of::kBytes, static_cast<uint64_t>(has.bytes),
                space.options.max_bytes);
  }
  added->Add(generation, change);
  return absl::OkStatus();
}

absl::Status Quotas::Count(NamespaceGeneration generation) {
  VARVE_ASSIGN_OR_RETURN(const KeyCounts all, parts_.counter->CountGeneration(generation));
  VARVE_ASSERT(all.keys >= 0 && all.bytes >= 0);
  bounds_.Add(generation, -bounds_.Of(generation));
  bounds_.Add(generation, all);
  VARVE_ASSERT(bounds_.Knows(generation));
  return absl::OkStatus();
}

absl::StatusOr<KeyCounts> Quotas::ChangeOf(const Commit& commit,
                                           NamespaceGeneration generation) const {
  VARVE_ASSIGN_OR_RETURN(const ReadPoint point,
                         BeginRead(*parts_.versions, *parts_.log, {.space = kExpirySpace}));
  std::unordered_map<std::string_view, KeyCounts> written;  // by key: what it is after the batch
  KeyCounts change;
  for (const Commit::Operation& operation : commit.operations()) {
    if (!IsWriteTo(operation, generation)) continue;
    const auto [entry, is_first] = written.try_emplace(operation.record.key);
    if (is_first) {
      Lookup lookup(generation, UserKeyOf(operation.record.key));
      VARVE_ASSIGN_OR_RETURN(const bool is_live, FindLive(*point.state, point.sequence, &lookup));
      const uint64_t expiry_ms = lookup.record.expiry_ms;
      // Who replaces what has expired adds a key, whether or not it is still on disk.
      if (is_live && (expiry_ms == 0 || expiry_ms > parts_.clock->NowMillis()))
        change += -CountsOf(lookup.record);
    }
    entry->second =
        operation.record.kind == RecordKind::kValue ? CountsOf(operation.record) : KeyCounts();
  }
  for (const auto& [key, after] : written) change += after;
  return change;
}

}  // namespace varve
