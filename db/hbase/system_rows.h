// The rows that the servers of one store over HBase share. They lie in its main table, before the
// rows of all keys, as cells like any other (db/hbase/row_codec.h):
//
//   format           what the table is: a mark, the format, and the id of the store. The tables of
//                    groups have it as well, so that none of them is taken for another store's
//   catalog          the namespaces (db/hbase/space_catalog.h)
//   floor            the floor of versions (db/hbase/version_clock.h): varint64
//   remover          the server that removes what is gone (db/hbase/remover.h)
//   server:<id>      what a server has seen last (db/hbase/server_roster.h)
//
// Thread-safety: All functions are thread-safe. They wait for the cluster, at most until the
// deadline of the store's options; those of rows for the background, for some seconds.
// Requires: The context outlives this object.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/hbase_context.h"
#include "varve/types.h"

namespace varve {

inline constexpr std::string_view kCatalogRow = "catalog";
inline constexpr std::string_view kFloorRow = "floor";
inline constexpr std::string_view kRemoverRow = "remover";
inline constexpr std::string_view kServerRows = "server:";

// A shared row as it was read.
struct SystemRow {
  bool is_there = false;
  SequenceNumber version = kNoSequence;
  std::string identity;  // the beginning of its cell
  std::string value;
};

class SystemRows {
 public:
  // The rows of the table of namespaces so grouped; without groups, of the main table.
  explicit SystemRows(HbaseContext* context, bool is_for_background = false,
                      const KeyGrouping& grouping = {});
  // Returns the same rows for calls that end by `deadline`, if not before.
  SystemRows Until(HbaseClient::Deadline deadline) const {
    SystemRows rows = *this;
    rows.deadline_ = std::min(deadline_, deadline);
    return rows;
  }

  // Makes the table a store's if it is new, or checks that it is one. FailedPrecondition: it holds
  // what no varve has written, what a varve of another format has, or what another store than
  // `store` has, unless that is empty. Returns the id of the store.
  absl::StatusOr<std::string> Open(std::string_view store);
  // Does the last of these checks alone, and takes a table for the store's that says nothing.
  absl::Status CheckStore(std::string_view store);

  absl::StatusOr<std::vector<SystemRow>> Read(const std::vector<std::string_view>& names);
  // Returns the rows whose names begin with `prefix`, with what follows it.
  absl::StatusOr<std::vector<std::pair<std::string, SystemRow>>> List(std::string_view prefix);
  absl::Status Put(std::string_view name, std::string_view value);
  // Writes the row if nobody has written it since it was read; else Aborted. Returns the version.
  absl::StatusOr<SequenceNumber> Replace(std::string_view name, const SystemRow& read,
                                         std::string_view value);
  // Removes the row if nobody has written it since it was read; else Aborted.
  absl::Status Remove(std::string_view name, const SystemRow& read);

 private:
  std::string RowOf(std::string_view name) const { return prefix_ + std::string(name); }
  HbaseClient::Deadline NewDeadline() const {
    return std::min(deadline_,
                    is_for_background_ ? context_->BackgroundDeadline() : context_->NewDeadline());
  }
  absl::StatusOr<SystemRow> RowFrom(std::string_view name,
                                    const std::optional<std::string>& cell) const;
  absl::Status Commit(HbaseRowWrite write);
  absl::Status CheckIsEmpty();
  absl::StatusOr<std::string> CheckFormat(const SystemRow& row, std::string_view store) const;

  HbaseContext* const context_;
  const bool is_for_background_;
  const std::string_view mark_;  // what the table is
  const std::string table_;
  const std::string prefix_;
  HbaseClient::Deadline deadline_ = HbaseClient::Deadline::max();
};

}  // namespace varve
