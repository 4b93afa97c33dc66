#include "db/hbase/namespace_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

// A server on a busy machine looks no more often than that.
constexpr std::chrono::milliseconds kShortestBeat{1'000};

}  // namespace

absl::StatusOr<SequenceNumber> NamespaceWriter::ChangeCatalog(
    const std::function<absl::Status(SpaceCatalog*)>& change, HbaseClient::Deadline deadline) {
  SystemRows rows = rows_->Until(deadline);
  for (;;) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<SystemRow> read, rows.Read({kCatalogRow}));
    if (!read.front().is_there) {
      return absl::DataLossError(fmt::format(
          "the list of namespaces of table {} is gone; somebody has removed rows of the table",
          context_->options.table));
    }
    VARVE_ASSIGN_OR_RETURN(SpaceCatalog catalog, SpaceCatalog::Decode(read.front().value));
    VARVE_RETURN_IF_ERROR(change(&catalog));
    const absl::StatusOr<SequenceNumber> version =
        rows.Replace(kCatalogRow, read.front(), catalog.Encode());
    if (version.ok()) {
      context_->spaces.Show(std::move(catalog), *version);
      return version;
    }
    if (!absl::IsAborted(version.status())) return version;
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::UnavailableError(
          "other servers changed namespaces again and again, so this change was given up");
    }
  }
}

absl::StatusOr<CommitResult> NamespaceWriter::Change(const BatchPlan& plan,
                                                     HbaseClient::Deadline deadline) {
  for (const KeyGrouping& grouping : plan.new_groupings) {
    VARVE_RETURN_IF_ERROR(context_->client->EnsureTable(TableOf(context_->options.table, grouping),
                                                        context_->options.may_create, deadline));
    // Generations are numbers of this store: those of another one may be the same.
    const SystemRows table(context_, /*is_for_background=*/false, grouping);
    VARVE_RETURN_IF_ERROR(table.Until(deadline).Open(context_->store).status());
  }
  bool retires = false;
  VARVE_ASSIGN_OR_RETURN(const SequenceNumber version,
                         ChangeCatalog(
                             [&](SpaceCatalog* catalog) -> absl::Status {
                               const size_t retired = catalog->retired().size();
                               for (const BatchPlan::CatalogChange& change : plan.catalog_changes)
                                 VARVE_RETURN_IF_ERROR(change(catalog));
                               retires = catalog->retired().size() > retired;
                               return absl::OkStatus();
                             },
                             deadline));
  absl::Status seen = roster_->Beat(deadline);
  if (seen.ok())
    seen = roster_->WaitForAll({.catalog = version}, DeadlineOfWait(retires, deadline));
  if (seen.ok() || !retires) return CommitResult{.sequence = version};
  return absl::UnavailableError(
      fmt::format("the namespaces were changed, but other servers may still work with them as they "
                  "were, and what is written there meanwhile may be lost: {}",
                  std::string(seen.message())));
}

// A server that is alive looks at the catalog each beat. Where a place was retired, the change
// waits for those that can't, as writes to the place are lost. A server that does not know of a
// new namespace refuses it, and that is no reason for an error.
HbaseClient::Deadline NamespaceWriter::DeadlineOfWait(bool retires,
                                                      HbaseClient::Deadline deadline) const {
  if (retires) return deadline;
  const std::chrono::milliseconds wait = 3 * std::max(context_->options.beat, kShortestBeat);
  return std::min(deadline, std::chrono::steady_clock::now() + wait);
}

}  // namespace varve
