// The namespace table is the set of namespaces at one moment: the generation in which each lives,
// its description (name, quota, default expiry and sync) and the forks of clones.
//
// Thread-safety: a plain value. Copies share the descriptions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "db/format/manifest_contents.h"
#include "db/format/namespace_change.h"
#include "db/format/namespace_forks.h"
#include "type/tree_key.h"
#include "varve/namespace.h"

namespace varve {

class NamespaceTable {
 public:
  NamespaceTable() = default;
  explicit NamespaceTable(const Manifest& manifest);
  void WriteTo(Manifest* manifest) const;

  // Returns the namespace's generation; nothing if there is no such namespace.
  std::optional<NamespaceGeneration> Generation(NamespaceId id) const {
    // The common case: databases 0, 1, 2 ... all have entries.
    if (id < entries_.size() && entries_[id].id == id) return entries_[id].generation;
    const ManifestNamespace* const entry = Find(id);
    if (entry != nullptr) return entry->generation;
    if (id == kExpirySpace) return kExpiryGeneration;  // nobody's, so no entry
    return std::nullopt;
  }
  // Returns the namespaces that see records of the generation: the one that lives in it, and its
  // clones.
  std::vector<ManifestNamespace> NamespacesSeeing(NamespaceGeneration generation) const;
  bool Holds(NamespaceGeneration generation) const {
    for (const ManifestNamespace& entry : entries_) {
      if (entry.generation == generation) return true;
    }
    return false;
  }
  // Ascending by id.
  const std::vector<ManifestNamespace>& entries() const { return entries_; }

  void Set(NamespaceId id, NamespaceGeneration generation);
  void Remove(NamespaceId id);
  // The forks of the table's generations, and of retired ones that have not been forgotten.
  const NamespaceForks& forks() const { return forks_; }
  // Forgets the forks that are not in ForksOf(retired).
  void ForgetForks(const std::vector<NamespaceGeneration>& retired) { forks_ = ForksOf(retired); }
  // Returns the forks of the table's generations, of those in `more`, and of all their ancestors.
  NamespaceForks ForksOf(std::vector<NamespaceGeneration> more) const;
  // Creates, alters, drops, swaps or clones a namespace. After an error (AlreadyExists,
  // InvalidArgument, ResourceExhausted) nothing has changed.
  [[nodiscard]] absl::Status Apply(const NamespaceChange& change);

  // Returns whether the operation changes the table. Replay() makes that change again; it returns
  // DataLoss if the operation makes no sense.
  static bool IsChangedBy(const RecordView& operation) {
    return operation.kind == RecordKind::kSwitchGeneration ||
           operation.kind == RecordKind::kChangeNamespace;
  }
  [[nodiscard]] absl::Status Replay(const RecordView& operation);
  // Returns the namespaces whose generation such an operation changes or removes.
  static std::vector<NamespaceId> MovedBy(const RecordView& operation);
  // Returns the highest generation that a namespace of this table ever had.
  NamespaceGeneration HighestGeneration() const { return highest_generation_; }

  // Both return null if there is no such description; a database without a quota or other option
  // has none. The pointer is valid until the table changes.
  const NamespaceDescription* Description(NamespaceId id) const;
  const NamespaceDescription* Named(std::string_view name) const;
  KeyGrouping GroupingOf(NamespaceId id) const;
  // Returns the name that people see; the number of a database as text.
  std::string ShownNameOf(NamespaceId id) const;
  NamespaceId next_named() const { return next_named_; }
  // Returns whether some namespace has a quota or a sync mode of its own, so that writes have to
  // look up descriptions.
  bool has_rules() const { return has_rules_; }
  // Returns whether the store's formats have a place for what its history needs.
  bool keeps_history() const { return keeps_history_; }
  // Returns whether some namespace has a default expiry.
  bool expires_by_default() const { return expires_by_default_; }
  // Returns whether some namespace declares groups of keys.
  bool declares_groups() const { return declares_groups_; }

 private:
  using Descriptions = std::vector<NamespaceDescription>;  // ascending by id

  const ManifestNamespace* Find(NamespaceId id) const;
  const Descriptions& descriptions() const;
  absl::Status Create(const NamespaceChange& change);
  absl::Status Clone(const NamespaceChange& change);
  absl::Status CheckDescription(const NamespaceDescription& space) const;
  // Inserts or replaces the description; removes it if it says nothing.
  void Describe(const NamespaceDescription& space);

  std::vector<ManifestNamespace> entries_;
  NamespaceGeneration highest_generation_ = kNoGeneration;
  std::shared_ptr<const Descriptions> descriptions_;  // null: none
  NamespaceForks forks_;
  NamespaceId next_named_ = kFirstNamedNamespace;
  bool has_rules_ = false;
  bool expires_by_default_ = false;
  bool declares_groups_ = false;
  bool keeps_history_ = false;
};

}  // namespace varve
