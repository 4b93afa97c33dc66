// The plan of a batch is what it asks of a store over HBase: either rows to be written, or changes
// of the catalog. A batch that mixes them is refused, since no commit of HBase covers both.
//
// Later operations on a key win over earlier ones; a condition on a key and an operation on it are
// one intent.
//
// Thread-safety: One thread at a time makes a plan.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/row_commit.h"
#include "db/hbase/space_catalog.h"
#include "varve/write_batch.h"

namespace varve {

// The most bytes of keys and values that are written together: a region's server holds all of them
// in memory, several times.
inline constexpr size_t kMaxCommitBytes = 16u << 20;
// The most rows of one commit.
inline constexpr size_t kMaxCommitRows = 10'000;

struct BatchPlan {
  using CatalogChange = std::function<absl::Status(SpaceCatalog*)>;

  // The intents of one table, in the order of the batch.
  struct Table {
    std::string name;
    std::vector<RowIntent> intents;
    size_t bytes = 0;
  };

  std::vector<Table> tables;
  std::vector<CatalogChange> catalog_changes;
  std::vector<KeyGrouping> new_groupings;  // of namespaces that are created
  size_t operations = 0;                   // on keys
};

// InvalidArgument: a key or a value is too large. FailedPrecondition: the batch asks for what the
// store can't do. NoSuchNamespace, Unavailable: as SpaceView::Find. Aborted: its conditions
// contradict each other.
absl::StatusOr<BatchPlan> PlanBatch(const HbaseContext& context, const WriteBatch& batch);

}  // namespace varve
