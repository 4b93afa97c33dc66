// Which namespaces there are at one moment, which generation each lives in, and what was asked of
// them. A plain value; copies share the descriptions.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "db/format/manifest_contents.h"
#include "db/format/namespace_bases.h"
#include "db/format/namespace_change.h"
#include "type/tree_key.h"
#include "varve/namespace.h"

namespace varve {

class NamespaceTable {
 public:
  NamespaceTable() = default;
  explicit NamespaceTable(const Manifest& manifest);
  void WriteTo(Manifest* manifest) const;

  // Null: there is no such namespace.
  std::optional<NamespaceGeneration> Generation(NamespaceId id) const {
    // A database, mostly.
    if (id < entries_.size() && entries_[id].id == id) return entries_[id].generation;
    const ManifestNamespace* const entry = Find(id);
    if (entry != nullptr) return entry->generation;
    if (id == kExpirySpace) return kExpiryGeneration;  // nobody's, so no entry
    return std::nullopt;
  }
  // Returns the namespaces that see something of the generation: the one that lives in it, and its
  // clones.
  std::vector<ManifestNamespace> SpacesOn(NamespaceGeneration generation) const;
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
  // The parents of generations, both of those in the table and of others that may have left it.
  const NamespaceBases& bases() const { return bases_; }
  // Forgets the parents that neither the table's generations nor those of `left` were forked from.
  void ForgetBases(const std::vector<NamespaceGeneration>& left) { bases_ = BasesUnder(left); }
  NamespaceBases BasesUnder(std::vector<NamespaceGeneration> more) const;
  // Creates, alters, drops, swaps or clones. Where that is refused (AlreadyExists, InvalidArgument,
  // ResourceExhausted), nothing has changed.
  [[nodiscard]] absl::Status Apply(const NamespaceChange& change);

  // Replay() does to the namespaces what an operation of the log did. DataLoss: it makes no sense.
  static bool IsChangedBy(const RecordView& operation) {
    return operation.kind == RecordKind::kSwitchGeneration ||
           operation.kind == RecordKind::kChangeNamespace;
  }
  [[nodiscard]] absl::Status Replay(const RecordView& operation);
  // The namespaces that such an operation gives another generation, or takes theirs.
  static std::vector<NamespaceId> MovedBy(const RecordView& operation);
  // That a namespace ever had here, also one that is gone.
  NamespaceGeneration HighestGeneration() const { return highest_generation_; }

  // Null: nothing was ever asked of it, and it has no name. Valid until the table changes.
  const NamespaceDescription* Description(NamespaceId id) const;
  const NamespaceDescription* Named(std::string_view name) const;
  NamespaceId next_named() const { return next_named_; }
  // Writes have to be looked at: some namespace has a quota or a mode of its own.
  bool has_rules() const { return has_rules_; }
  // Some namespace has a default expiry.
  bool expires_by_default() const { return expires_by_default_; }

 private:
  using Descriptions = std::vector<NamespaceDescription>;  // ascending by id

  const ManifestNamespace* Find(NamespaceId id) const;
  const Descriptions& descriptions() const;
  absl::Status Create(const NamespaceChange& change);
  absl::Status CheckName(const NamespaceDescription& space) const;
  // Puts the description in its place; one that says nothing is left out.
  void Describe(const NamespaceDescription& space);

  std::vector<ManifestNamespace> entries_;
  NamespaceGeneration highest_generation_ = kNoGeneration;
  std::shared_ptr<const Descriptions> descriptions_;  // null: none
  NamespaceBases bases_;
  NamespaceId next_named_ = kFirstNamedNamespace;
  bool has_rules_ = false;
  bool expires_by_default_ = false;
};

}  // namespace varve
