#include "db/hbase/batch_plan.h"

#include <map>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

absl::Status NotHere(std::string_view what) {
  return absl::FailedPreconditionError(fmt::format("a store over HBase {}", what));
}

class Planner final : public WriteBatch::OperationVisitor, public WriteBatch::ConditionVisitor {
 public:
  Planner(const HbaseContext& context, BatchPlan* plan) : context_(context), plan_(*plan) {}

  // --- Operations
  absl::Status Put(NamespaceId space, std::string_view key, std::string_view value,
                   const PutExtras& extras) override {
    if (value.size() > context_.options.max_value_size) {
      return absl::InvalidArgumentError(fmt::format(
          "a value of {} bytes: this server's store keeps at most {} (--hbase-max-value)",
          value.size(), context_.options.max_value_size));
    }
    VARVE_ASSIGN_OR_RETURN(RowIntent* const intent, IntentOf(space, key));
    intent->kind = RowIntent::Kind::kPut;
    intent->value = value;
    intent->metadata = extras.metadata;
    intent->expiry_ms = extras.expiry_ms;
    plan_.operations += 1;
    return absl::OkStatus();
  }
  absl::Status Delete(NamespaceId space, std::string_view key, WriteCause) override {
    VARVE_ASSIGN_OR_RETURN(RowIntent* const intent, IntentOf(space, key));
    intent->kind = RowIntent::Kind::kDelete;
    intent->value.clear();
    intent->metadata.clear();
    plan_.operations += 1;
    return absl::OkStatus();
  }
  absl::Status DeleteRange(NamespaceId, std::string_view, std::string_view) override {
    return NotHere("can't delete a range in one step; delete its keys");
  }
  absl::Status ClearNamespace(NamespaceId space) override {
    return Change([space](SpaceCatalog* catalog) { return catalog->Clear(space); });
  }
  absl::Status CreateNamespace(const NamespaceDescription& space) override {
    VARVE_RETURN_IF_ERROR(CheckGrouping(space.options.grouping));
    plan_.new_groupings.push_back(space.options.grouping);
    return Change([space](SpaceCatalog* catalog) { return catalog->Create(space); });
  }
  absl::Status CloneNamespace(NamespaceId, const NamespaceDescription&) override {
    return NotHere("can't clone a namespace; copy its keys");
  }
  absl::Status CloneNamespaceAt(NamespaceId, SequenceNumber, const NamespaceDescription&) override {
    return NotHere("keeps no history, so it can't clone a namespace as it was");
  }
  absl::Status AlterNamespace(const NamespaceDescription& space) override {
    return Change([space](SpaceCatalog* catalog) { return catalog->Alter(space); });
  }
  absl::Status DropNamespace(NamespaceId space) override {
    return Change([space](SpaceCatalog* catalog) { return catalog->Drop(space); });
  }
  absl::Status SwapNamespaces(NamespaceId, NamespaceId) override {
    return NotHere("can't exchange two namespaces: servers would see it at different moments");
  }

  // --- Conditions
  absl::Status Unchanged(NamespaceId space, std::string_view key,
                         const WriteBatch::ReadPoint& read) override {
    if (!read.version.has_value())
      return NotHere("has no order of all writes: a condition needs the version that was read");
    // A read of a missing key tells the version of what is left of it as its place in the order.
    const SequenceNumber wanted = *read.version != kNoSequence ? *read.version : read.sequence;
    VARVE_ASSIGN_OR_RETURN(RowIntent* const intent, IntentOf(space, key));
    if (intent->required.has_value() && *intent->required != wanted)
      return absl::AbortedError("a key was written between two reads of it");
    intent->required = wanted;
    return absl::OkStatus();
  }
  absl::Status NotPut(NamespaceId space, std::string_view key,
                      const WriteBatch::ReadPoint& read) override {
    return Unchanged(space, key, read);
  }
  absl::Status RangeUnchanged(NamespaceId, std::string_view, std::string_view,
                              SequenceNumber) override {
    return NotHere("has no snapshots, so it takes no conditions on ranges");
  }

  // Adds up the bytes of each table.
  void Finish() {
    for (BatchPlan::Table& table : plan_.tables) {
      for (const RowIntent& intent : table.intents)
        table.bytes += intent.row.size() + intent.metadata.size() + intent.value.size();
    }
  }

 private:
  absl::Status Change(BatchPlan::CatalogChange change) {
    plan_.catalog_changes.push_back(std::move(change));
    return absl::OkStatus();
  }

  absl::StatusOr<const PlacedSpace*> Place(NamespaceId space) {
    const auto known = places_.find(space);
    if (known != places_.end()) return &known->second;
    VARVE_ASSIGN_OR_RETURN(PlacedSpace place, context_.spaces.Find(space));
    return &places_.emplace(space, std::move(place)).first->second;
  }

  // Returns the intent of a key's row, a new one if there is none. It stays valid until the next
  // call.
  absl::StatusOr<RowIntent*> IntentOf(NamespaceId space, std::string_view key) {
    if (key.size() > kMaxHbaseKeySize) {
      return absl::InvalidArgumentError(
          fmt::format("a key of {} bytes: this server's store keeps keys of at most {}", key.size(),
                      kMaxHbaseKeySize));
    }
    VARVE_ASSIGN_OR_RETURN(const PlacedSpace* const place, Place(space));
    size_t table = 0;
    while (table < plan_.tables.size() && plan_.tables[table].name != place->table) ++table;
    if (table == plan_.tables.size()) plan_.tables.push_back({.name = place->table});
    std::string row = place->RowOf(key);
    std::vector<RowIntent>& intents = plan_.tables[table].intents;
    const auto [at, is_new] = indices_.emplace(std::pair(table, row), intents.size());
    if (is_new) intents.push_back({.row = std::move(row)});
    return &intents[at->second];
  }

  const HbaseContext& context_;
  BatchPlan& plan_;
  std::map<NamespaceId, PlacedSpace> places_;
  std::map<std::pair<size_t, std::string>, size_t> indices_;
};

}  // namespace

absl::StatusOr<BatchPlan> PlanBatch(const HbaseContext& context, const WriteBatch& batch) {
  BatchPlan plan;
  Planner planner(context, &plan);
  VARVE_RETURN_IF_ERROR(batch.ForEachOperation(&planner));
  VARVE_RETURN_IF_ERROR(batch.ForEachCondition(&planner));
  planner.Finish();
  if (!plan.tables.empty() && !plan.catalog_changes.empty()) {
    return NotHere("can't change namespaces and write keys in one step; send one after the other");
  }
  return plan;
}

}  // namespace varve
