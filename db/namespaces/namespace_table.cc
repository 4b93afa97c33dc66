#include "db/namespaces/namespace_table.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr auto kIdBelow = [](const auto& entry, NamespaceId id) { return entry.id < id; };

bool HasRules(const std::vector<NamespaceDescription>& descriptions) {
  return std::any_of(descriptions.begin(), descriptions.end(),
                     [](const NamespaceDescription& space) {
                       return space.options.has_quota() || space.options.sync.has_value();
                     });
}

bool ExpiresByDefault(const std::vector<NamespaceDescription>& descriptions) {
  return std::any_of(
      descriptions.begin(), descriptions.end(),
      [](const NamespaceDescription& space) { return space.options.default_expiry_ms != 0; });
}

bool DeclaresGroups(const std::vector<NamespaceDescription>& descriptions) {
  return std::any_of(
      descriptions.begin(), descriptions.end(),
      [](const NamespaceDescription& space) { return space.options.grouping.declared(); });
}

}  // namespace

NamespaceTable::NamespaceTable(const Manifest& manifest)
    : entries_(manifest.namespaces),
      descriptions_(manifest.descriptions.empty()
                        ? nullptr
                        : std::make_shared<const Descriptions>(manifest.descriptions)),
      forks_(manifest.forks),
      next_named_(manifest.next_named_namespace),
      has_rules_(HasRules(manifest.descriptions)),
      expires_by_default_(ExpiresByDefault(manifest.descriptions)),
      declares_groups_(DeclaresGroups(manifest.descriptions)),
      keeps_history_(manifest.has_history) {
  for (const ManifestNamespace& entry : entries_)
    highest_generation_ = std::max(highest_generation_, entry.generation);
}

const NamespaceTable::Descriptions& NamespaceTable::descriptions() const {
  static const Descriptions* const none = new Descriptions();
  return descriptions_ == nullptr ? *none : *descriptions_;
}

void NamespaceTable::WriteTo(Manifest* manifest) const {
  manifest->namespaces = entries_;
  manifest->descriptions = descriptions();
  manifest->forks = ForksOf({}).all();
  manifest->next_named_namespace = next_named_;
}

const ManifestNamespace* NamespaceTable::Find(NamespaceId id) const {
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), id, kIdBelow);
  return entry != entries_.end() && entry->id == id ? &*entry : nullptr;
}

void NamespaceTable::Set(NamespaceId id, NamespaceGeneration generation) {
  highest_generation_ = std::max(highest_generation_, generation);
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), id, kIdBelow);
  if (entry != entries_.end() && entry->id == id) {
    entry->generation = generation;
  } else {
    entries_.insert(entry, {id, generation});
  }
}

void NamespaceTable::Remove(NamespaceId id) {
  std::erase_if(entries_, [id](const ManifestNamespace& entry) { return entry.id == id; });
}

std::vector<ManifestNamespace> NamespaceTable::NamespacesSeeing(
    NamespaceGeneration generation) const {
  std::vector<ManifestNamespace> spaces;
  for (const ManifestNamespace& entry : entries_) {
    if (forks_.IsOrDescendsFrom(entry.generation, generation)) spaces.push_back(entry);
  }
  return spaces;
}

NamespaceForks NamespaceTable::ForksOf(std::vector<NamespaceGeneration> more) const {
  if (forks_.empty()) return {};
  for (const ManifestNamespace& entry : entries_) more.push_back(entry.generation);
  return forks_.AncestryOf(more);
}

const NamespaceDescription* NamespaceTable::Description(NamespaceId id) const {
  const auto space = std::lower_bound(descriptions().begin(), descriptions().end(), id, kIdBelow);
  return space != descriptions().end() && space->id == id ? &*space : nullptr;
}

KeyGrouping NamespaceTable::GroupingOf(NamespaceId id) const {
  const NamespaceDescription* const space = Description(id);
  return space != nullptr ? space->options.grouping : KeyGrouping();
}

std::string NamespaceTable::ShownNameOf(NamespaceId id) const {
  const NamespaceDescription* const described = Description(id);
  return described == nullptr || described->name.empty() ? fmt::to_string(id) : described->name;
}

const NamespaceDescription* NamespaceTable::Named(std::string_view name) const {
  for (const NamespaceDescription& space : descriptions()) {
    if (!space.name.empty() && space.name == name) return &space;
  }
  return nullptr;
}

void NamespaceTable::Describe(const NamespaceDescription& space) {
  auto changed = std::make_shared<Descriptions>(descriptions());
  const auto place = std::lower_bound(changed->begin(), changed->end(), space.id, kIdBelow);
  const bool is_there = place != changed->end() && place->id == space.id;
  const bool says_nothing = space.name.empty() && space.options == NamespaceOptions();
  if (says_nothing) {
    if (is_there) changed->erase(place);
  } else if (is_there) {
    *place = space;
  } else {
    changed->insert(place, space);
  }
  has_rules_ = HasRules(*changed);
  expires_by_default_ = ExpiresByDefault(*changed);
  declares_groups_ = DeclaresGroups(*changed);
  descriptions_ = std::move(changed);
}

absl::Status NamespaceTable::CheckDescription(const NamespaceDescription& space) const {
  if (space.options.history.has_value() && !keeps_history_) return NoPlaceForHistory();
  if (space.options.compression.has_value() && !keeps_history_) {
    return absl::FailedPreconditionError(
        "the store's format has no place for compressed values: finalize its upgrade first");
  }
  if (space.options.grouping.declared() && !keeps_history_) {
    return absl::FailedPreconditionError(
        "the store's format has no place for groups of keys: finalize its upgrade first");
  }
  if (space.name.size() > kMaxNamespaceName) {
    return absl::InvalidArgumentError(
        fmt::format("name of a namespace of {} bytes: at most {} are allowed", space.name.size(),
                    kMaxNamespaceName));
  }
  if (space.name.empty() != (space.id < kFirstNamedNamespace) || space.id == kSelectedNamespace) {
    return absl::InvalidArgumentError(
        fmt::format("namespace {}: those from {} on have a name, and no others", space.id,
                    kFirstNamedNamespace));
  }
  const NamespaceDescription* const owner = space.name.empty() ? nullptr : Named(space.name);
  if (owner != nullptr && owner->id != space.id) {
    return absl::AlreadyExistsError(fmt::format("namespace '{}' exists already", space.name));
  }
  return absl::OkStatus();
}

absl::Status NamespaceTable::Replay(const RecordView& operation) {
  if (operation.kind == RecordKind::kSwitchGeneration) {
    if (operation.key.size() != kGenerationSize || operation.value.size() != kGenerationSize) {
      return absl::DataLossError("the emptying of a namespace makes no sense");
    }
    Set(GenerationOf(operation.key), GenerationOf(operation.value));
    return absl::OkStatus();
  }
  std::optional<NamespaceChange> change = DecodeNamespaceChange(operation);
  if (!change) return absl::DataLossError("the change of a namespace makes no sense");
  change->fork_point = operation.sequence;
  if (change->past && change->past->version >= operation.sequence)
    return absl::DataLossError("the clone of a past namespace is older than its past");
  const absl::Status applied = Apply(*change);
  return applied.ok() ? applied : absl::DataLossError(applied.message());
}

std::vector<NamespaceId> NamespaceTable::MovedBy(const RecordView& operation) {
  if (operation.kind == RecordKind::kSwitchGeneration) return {GenerationOf(operation.key)};
  const std::optional<NamespaceChange> change = DecodeNamespaceChange(operation);
  if (!change || change->verb == NamespaceChange::Verb::kAlter) return {};
  if (change->verb == NamespaceChange::Verb::kSwap) return {change->space.id, change->other};
  return {change->space.id};
}

absl::Status NamespaceTable::Create(const NamespaceChange& change) {
  const NamespaceId id = change.space.id;
  if (absl::Status named = CheckDescription(change.space); !named.ok()) return named;
  // One that was dropped may come back under its id, which no other one has had meanwhile.
  const bool comes_back = change.past && change.other == id;
  if (Generation(id) || (id >= kFirstNamedNamespace && id < next_named_ && !comes_back)) {
    return absl::AlreadyExistsError(fmt::format("namespace {} exists already, or did", id));
  }
  if (entries_.size() >= kMaxNamespaces) {
    return absl::ResourceExhaustedError(
        fmt::format("there are {} namespaces, as many as are allowed", entries_.size()));
  }
  Set(id, change.generation);
  Describe(change.space);
  if (id >= kFirstNamedNamespace) next_named_ = std::max(next_named_, id + 1);
  return absl::OkStatus();
}

absl::Status NamespaceTable::Clone(const NamespaceChange& change) {
  const NamespaceId id = change.space.id;
  const std::optional<ClonedPast>& past = change.past;
  const ManifestNamespace* const source = Find(change.other);
  if (source == nullptr && !past) return NoSuchNamespace(change.other);
  const NamespaceFork fork =
      past ? NamespaceFork{change.generation, past->parent, past->version, past->expired_by_ms}
           : NamespaceFork{change.generation, source->generation, change.fork_point};
  if (source != nullptr && GroupingOf(change.other) != change.space.options.grouping) {
    return absl::FailedPreconditionError(
        fmt::format("a clone of namespace '{}' has the groups of keys that its source has",
                    ShownNameOf(change.other)));
  }
  // Only where a repair had to guess which generation is whose.
  if (fork.parent >= fork.generation) {
    return absl::InvalidArgumentError(
        fmt::format("namespace {} can't be forked from a younger generation", id));
  }
  const size_t depth = past ? past->ancestry.size() : forks_.DepthOf(fork.parent);
  if (depth >= kMaxCloneDepth) {
    return absl::ResourceExhaustedError(
        fmt::format("namespace {} is a clone of clones, {} deep, as deep as is allowed",
                    change.other, kMaxCloneDepth));
  }
  if (absl::Status created = Create(change); !created.ok()) return created;
  for (size_t i = 0; past && i < depth; ++i) {
    if (forks_.Of(past->ancestry[i].generation) == nullptr) forks_.Add(past->ancestry[i]);
  }
  forks_.Add(fork);
  return absl::OkStatus();
}

absl::Status NamespaceTable::Apply(const NamespaceChange& change) {
  const NamespaceId id = change.space.id;
  if (change.verb == NamespaceChange::Verb::kCreate) return Create(change);
  if (change.verb == NamespaceChange::Verb::kClone) return Clone(change);
  const std::optional<NamespaceGeneration> present = Generation(id);
  if (!present) return NoSuchNamespace(id);
  if (change.verb == NamespaceChange::Verb::kAlter) {
    if (absl::Status named = CheckDescription(change.space); !named.ok()) return named;
    if (GroupingOf(id) != change.space.options.grouping) {
      return absl::FailedPreconditionError(fmt::format(
          "the groups of keys of namespace '{}' can't be changed: create another one and copy the "
          "keys",
          ShownNameOf(id)));
    }
    Describe(change.space);
  } else if (change.verb == NamespaceChange::Verb::kDrop) {
    if (id == kDefaultNamespace) return absl::InvalidArgumentError("namespace 0 can't be dropped");
    Remove(id);
    Describe({.id = id});
  } else {
    const std::optional<NamespaceGeneration> other = Generation(change.other);
    if (!other) return NoSuchNamespace(change.other);
    if (GroupingOf(id) != GroupingOf(change.other)) {
      return absl::FailedPreconditionError(
          fmt::format("namespaces '{}' and '{}' group their keys differently, and can't exchange "
                      "what they hold",
                      ShownNameOf(id), ShownNameOf(change.other)));
    }
    Set(id, *other);
    Set(change.other, *present);
  }
  return absl::OkStatus();
}

}  // namespace varve
