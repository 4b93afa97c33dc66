// The rows that the servers of one store over HBase share. They lie in its main table, before the
// rows of all keys, as cells like any other (db/hbase/row_codec.h):
//
//   format           what the table is: a mark, the format, and the id of the store
//   catalog          the namespaces (db/hbase/space_catalog.h)
//   floor            the floor of versions (db/hbase/version_clock.h): varint64
//   remover          the server that removes what is gone (db/hbase/remover.h)
//   server:<id>      what a server has seen last (db/hbase/server_roster.h)
//
// Thread-safety: All functions are thread-safe. They wait for the cluster, at most until the
// deadline of the store's options; those of rows for the background, for some seconds.
// Requires: The context outlives this object.
#pragma once

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
  explicit SystemRows(HbaseContext* context, bool is_for_background = false);

  // Makes the main table the store's if it is new, or checks that it is one. FailedPrecondition: it
  // holds what no varve has written, or what a varve of another format has.
  absl::Status Open();

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
    return is_for_background_ ? context_->BackgroundDeadline() : context_->NewDeadline();
  }
  absl::StatusOr<SystemRow> RowFrom(std::string_view name,
                                    const std::optional<std::string>& cell) const;
  absl::Status Commit(HbaseRowWrite write);
  absl::Status CheckIsEmpty();
  absl::Status CheckFormat(const SystemRow& row) const;

  HbaseContext* const context_;
  const bool is_for_background_;
  const std::string prefix_;
};

}  // namespace varve
