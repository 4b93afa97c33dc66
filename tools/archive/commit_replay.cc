#include "tools/archive/commit_replay.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "util/base/assert.h"
#include "util/base/status.h"
#include "varve/key_group.h"

namespace varve {
namespace {

using ChangeKind = ChangeOperation::Kind;

constexpr size_t kBatchBytes = size_t{256} << 10;
constexpr size_t kBatchOperations = 4096;
// A commit of more operations goes alone, so that a batch keeps to its limits.
constexpr size_t kManyOperations = 512;

bool IsDatabase(NamespaceId id) { return id < kFirstNamedNamespace; }

NamespaceDescription DescriptionOf(const ChangeOperation& operation) {
  return {.id = operation.space,
          .name = IsDatabase(operation.space) ? std::string() : operation.name};
}

absl::Status NoSuchSpace(const Change& commit, std::string_view name) {
  return absl::FailedPreconditionError(
      fmt::format("version {} is about namespace '{}', which the base and the changes before it "
                  "do not have; restore to a version before it",
                  commit.version, name));
}

std::string ProvisionalName(NamespaceId id) { return fmt::format("renamed-{}", id); }

bool IsLarge(const Change& commit) {
  if (commit.operations.size() >= kManyOperations) return true;
  size_t bytes = 0;
  for (const ChangeOperation& operation : commit.operations)
    bytes += operation.key.size() + operation.value.size() + operation.metadata.size();
  return bytes >= kBatchBytes;
}

}  // namespace

std::string WhyNotReplayed(const Change& commit) {
  for (const ChangeOperation& operation : commit.operations) {
    if (operation.kind == ChangeKind::kIngest) {
      return fmt::format("version {} added a file of sorted keys at once (INGEST)", commit.version);
    }
    if (operation.kind == ChangeKind::kClone && !operation.value.empty()) {
      return fmt::format(
          "version {} made namespace '{}' of the past of another one, or brought it "
          "back",
          commit.version, operation.name);
    }
  }
  return "";
}

absl::Status CommitReplay::Begin(Store* store) {
  store_ = store;
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store->Namespaces());
  spaces_.clear();
  for (const NamespaceDescription& space : list.namespaces) spaces_[space.id] = space;
  batch_.Clear();
  return absl::OkStatus();
}

absl::Status CommitReplay::Apply(const Change& commit) {
  VARVE_ASSERT(store_ != nullptr);
  if (const std::string why = WhyNotReplayed(commit); !why.empty())
    return absl::FailedPreconditionError(fmt::format("{}, which changes alone can't repeat", why));
  const bool is_large = IsLarge(commit);
  if (is_large) VARVE_RETURN_IF_ERROR(WriteBatchOut());
  // What is written bears the instant of the last commit of its batch.
  now_ms_.store(commit.instant_ms, std::memory_order_relaxed);
  for (const ChangeOperation& operation : commit.operations)
    VARVE_RETURN_IF_ERROR(ApplyOperation(commit, operation));
  const bool is_full =
      is_large || batch_.bytes() >= kBatchBytes || batch_.size() >= kBatchOperations;
  return is_full ? WriteBatchOut() : absl::OkStatus();
}

absl::Status CommitReplay::ApplyOperation(const Change& commit, const ChangeOperation& operation) {
  if (operation.kind == ChangeKind::kClone) return Clone(commit, operation);
  if (operation.kind == ChangeKind::kCreate) return Create(commit, operation);
  VARVE_RETURN_IF_ERROR(Follow(commit, operation));
  if (operation.kind == ChangeKind::kDrop || operation.kind == ChangeKind::kSwap)
    return ApplyToSpace(commit, operation);
  ApplyToKey(operation);
  return absl::OkStatus();
}

void CommitReplay::ApplyToKey(const ChangeOperation& operation) {
  switch (operation.kind) {
    case ChangeKind::kSet:
    case ChangeKind::kExpire:
    case ChangeKind::kMeta:
      batch_.Put(operation.key, operation.value,
                 {.expiry_ms = operation.expiry_ms, .metadata = operation.metadata},
                 operation.space);
      return;
    case ChangeKind::kDelete:
    case ChangeKind::kExpired:
    case ChangeKind::kEvicted:
      batch_.Delete(operation.key, operation.space);
      return;
    case ChangeKind::kDeleteRange:
      batch_.DeleteRange(operation.key, operation.value, operation.space);
      return;
    default:
      VARVE_ASSERT(operation.kind == ChangeKind::kFlush);
      batch_.ClearNamespace(operation.space);
  }
}

absl::Status CommitReplay::ApplyToSpace(const Change& commit, const ChangeOperation& operation) {
  if (operation.kind == ChangeKind::kDrop) {
    batch_.DropNamespace(operation.space);
    created_.erase(operation.name);
    spaces_.erase(operation.space);
    return absl::OkStatus();
  }
  VARVE_ASSIGN_OR_RETURN(const NamespaceId other, OtherOf(commit, operation));
  batch_.SwapNamespaces(operation.space, other);
  return absl::OkStatus();
}

absl::Status CommitReplay::Create(const Change& commit, const ChangeOperation& operation) {
  NamespaceDescription space = DescriptionOf(operation);
  const std::optional<KeyGrouping> grouping = GroupingOfText(operation.value);
  if (!grouping) {
    return absl::FailedPreconditionError(
        fmt::format("version {} made namespace '{}' with groups of keys that this version of Varve "
                    "does not know: '{}'",
                    commit.version, operation.name, operation.value));
  }
  space.options.grouping = *grouping;
  FreeName(space.name);
  // The store takes it in a batch of its own, as the first one did.
  if (grouping->declared()) VARVE_RETURN_IF_ERROR(WriteBatchOut());
  batch_.CreateNamespace(space);
  NoteSpace(space);
  return grouping->declared() ? WriteBatchOut() : absl::OkStatus();
}

absl::Status CommitReplay::Clone(const Change& commit, const ChangeOperation& operation) {
  VARVE_ASSIGN_OR_RETURN(const NamespaceId source, OtherOf(commit, operation));
  NamespaceDescription space = DescriptionOf(operation);
  space.options.grouping = spaces_.at(source).options.grouping;
  FreeName(space.name);
  VARVE_RETURN_IF_ERROR(WriteBatchOut());
  batch_.CloneNamespace(source, space);
  NoteSpace(space);
  return WriteBatchOut();
}

absl::Status CommitReplay::Follow(const Change& commit, const ChangeOperation& operation) {
  const auto found = spaces_.find(operation.space);
  if (found == spaces_.end()) return NoSuchSpace(commit, operation.name);
  NamespaceDescription& space = found->second;
  if (IsDatabase(space.id) || space.name == operation.name) return absl::OkStatus();
  FreeName(operation.name);
  Rename(operation.name, &space);
  return absl::OkStatus();
}

void CommitReplay::Rename(const std::string& name, NamespaceDescription* space) {
  if (created_.erase(space->name) > 0) created_.insert(name);
  space->name = name;
  batch_.AlterNamespace(*space);
}

void CommitReplay::FreeName(const std::string& name) {
  if (name.empty()) return;
  for (auto& [id, space] : spaces_)
    if (space.name == name) Rename(ProvisionalName(id), &space);
}

std::set<std::string> CommitReplay::Unnamed() const {
  std::set<std::string> names;
  for (const auto& [id, space] : spaces_)
    if (space.name == ProvisionalName(id)) names.insert(space.name);
  return names;
}

absl::StatusOr<NamespaceId> CommitReplay::OtherOf(const Change& commit,
                                                  const ChangeOperation& operation) const {
  const std::string& name = operation.key;
  NamespaceId number = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  const bool is_number = error == std::errc() && stop == end && IsDatabase(number);
  for (const auto& [id, space] : spaces_) {
    if (is_number ? id == number : !space.name.empty() && space.name == name) return id;
  }
  return NoSuchSpace(commit, name);
}

void CommitReplay::NoteSpace(const NamespaceDescription& space) {
  spaces_[space.id] = space;
  if (!IsDatabase(space.id)) created_.insert(space.name);
}

absl::Status CommitReplay::WriteBatchOut() {
  if (batch_.empty()) return batch_.status();
  // Each commit was within one group of keys, and a batch of several need not be.
  const WriteOptions options{
      .sync = Durability::kNone, .override_sync = true, .independent_keys = true};
  const absl::Status written = store_->Write(options, &batch_).status();
  batch_.Clear();
  return written;
}

}  // namespace varve
