// The catalog of a store over HBase: its namespaces, where the keys of each lie, and the places
// whose keys are to be removed. It is one row of the store's main table, so that a change of any
// number of namespaces is one conditional write, and each server keeps a copy.
//
// A namespace is emptied by a new generation, whose number no keys have had yet; the old one is
// retired and its rows are removed later.
//
//   value of the row's cell: 1 format, varint32 next generation, varint32 next id,
//     varint32 count, of each namespace: varint32 id, varint32 generation, description
//       (db/format/namespace_change.h),
//     varint32 count, of each retired place: varint32 generation, 1 kind of grouping, 1 delimiter
//
// Thread-safety: Plain values; a copy that servers share does not change any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/row_codec.h"
#include "varve/key_group.h"
#include "varve/namespace.h"
#include "varve/types.h"

namespace varve {

// The table and the first bytes of the rows of one generation.
struct KeyPlace {
  HbaseGeneration generation = kSystemGeneration;
  KeyGrouping grouping;

  friend bool operator==(const KeyPlace&, const KeyPlace&) = default;
};

// Returns which byte the first bytes of rows leave out in the table of namespaces so grouped.
uint8_t LeftOutByte(const KeyGrouping& grouping);
// Returns the name of that table, for a store whose main table is `table`, and how it is split.
HbaseTableLayout TableOf(const std::string& table, const KeyGrouping& grouping);

// InvalidArgument: HBase can't keep such groups together.
absl::Status CheckGrouping(const KeyGrouping& grouping);

class SpaceCatalog {
 public:
  struct Space {
    NamespaceDescription description;
    HbaseGeneration generation = kSystemGeneration;

    KeyPlace place() const { return {generation, description.options.grouping}; }
  };

  // Returns the catalog of a store that was just created: it has the default namespace.
  static SpaceCatalog New();
  // DataLoss: the bytes are no catalog.
  static absl::StatusOr<SpaceCatalog> Decode(std::string_view bytes);
  std::string Encode() const;

  // Returns null if there is no such namespace.
  const Space* Find(NamespaceId id) const;
  NamespaceList List() const;
  const std::vector<KeyPlace>& retired() const { return retired_; }

  // Change the catalog, or say why not and leave it as it was: AlreadyExists, NoSuchNamespace,
  // InvalidArgument, FailedPrecondition, ResourceExhausted.
  absl::Status Create(const NamespaceDescription& description);
  absl::Status Alter(const NamespaceDescription& description);
  absl::Status Drop(NamespaceId id);
  absl::Status Clear(NamespaceId id);
  // Forgets a retired place, whose rows are gone.
  void Forget(const KeyPlace& place);

 private:
  Space* FindMutable(NamespaceId id);
  static absl::Status CheckOptions(const NamespaceOptions& options);
  absl::Status CheckName(const NamespaceDescription& description) const;
  absl::StatusOr<HbaseGeneration> TakeGeneration();

  std::vector<Space> spaces_;  // ascending by id
  std::vector<KeyPlace> retired_;
  HbaseGeneration next_generation_ = 1;
  NamespaceId next_id_ = kFirstNamedNamespace;
};

}  // namespace varve
