#include "db/hbase/system_rows.h"

#include <algorithm>

#include "db/hbase/space_catalog.h"
#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kFormatRow = "format";
constexpr std::string_view kMark = "varve over hbase";
constexpr uint8_t kFormat = 1;

std::string FormatValue(std::string_view store) {
  std::string value(kMark);
  value.push_back(static_cast<char>(kFormat));
  return value.append(store);
}

absl::Status IsForeign(std::string_view table) {
  return absl::FailedPreconditionError(fmt::format(
      "table {} was not made by varve: it holds rows, but not the one that says what it is; name "
      "another table (--hbase-table)",
      table));
}

absl::Status IsOfAnotherStore(std::string_view table, std::string_view owner,
                              std::string_view store) {
  return absl::FailedPreconditionError(fmt::format(
      "table {} holds keys of store {}, and this one is store {}; if the other one is given up, "
      "drop the table in `hbase shell`, or else name another main table (--hbase-table)",
      table, owner, store));
}

}  // namespace

SystemRows::SystemRows(HbaseContext* context, bool is_for_background, const KeyGrouping& grouping)
    : context_(context),
      is_for_background_(is_for_background),
      table_(TableOf(context->options.table, grouping).name),
      prefix_(RowPrefix(kSystemGeneration, LeftOutByte(grouping))) {}

absl::StatusOr<SystemRow> SystemRows::RowFrom(std::string_view name,
                                              const std::optional<std::string>& cell) const {
  SystemRow row;
  if (!cell.has_value()) return row;
  const std::optional<HbaseCell> decoded = DecodeCell(*cell);
  if (!decoded) {
    return absl::DataLossError(
        fmt::format("row {} of table {} holds {} bytes that this version of varve did not write",
                    name, table_, cell->size()));
  }
  row.is_there = true;
  row.version = decoded->version;
  row.identity = cell->substr(0, kCellIdentitySize);
  row.value = decoded->value;
  return row;
}

absl::StatusOr<std::vector<SystemRow>> SystemRows::Read(
    const std::vector<std::string_view>& names) {
  std::vector<std::string> wanted;
  for (const std::string_view name : names) wanted.push_back(RowOf(name));
  using Cells = std::vector<HbaseClient::RowValue>;
  const Cells cells = AwaitAnswer<Cells>([&](HbaseClient::RowsDone done) {
    context_->client->GetRows(table_, std::move(wanted), NewDeadline(), std::move(done));
  });
  std::vector<SystemRow> rows;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!cells[i].ok()) return cells[i].status();
    VARVE_ASSIGN_OR_RETURN(SystemRow row, RowFrom(names[i], *cells[i]));
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<std::pair<std::string, SystemRow>>> SystemRows::List(
    std::string_view prefix) {
  HbaseScanRequest request;
  request.lower = RowOf(prefix);
  request.upper = request.lower;
  ++request.upper.back();  // names end with letters and the like
  std::vector<std::pair<std::string, SystemRow>> rows;
  for (;;) {
    using Slice = absl::StatusOr<HbaseScanSlice>;
    const Slice slice = AwaitAnswer<Slice>([&](HbaseClient::ScanDone done) {
      context_->client->ScanRows(table_, request, NewDeadline(), std::move(done));
    });
    if (!slice.ok()) return slice.status();
    for (const auto& [row, cell] : slice->rows) {
      VARVE_ASSIGN_OR_RETURN(SystemRow read, RowFrom(row.substr(prefix_.size()), cell));
      rows.emplace_back(row.substr(prefix_.size() + prefix.size()), std::move(read));
    }
    if (slice->is_complete || slice->rows.empty()) return rows;
    request.lower = slice->rows.back().first + '\0';
  }
}

absl::Status SystemRows::Commit(HbaseRowWrite write) {
  return AwaitAnswer<absl::Status>([&](HbaseClient::CommitDone done) {
    std::vector<HbaseRowWrite> writes(1, std::move(write));
    context_->client->CommitRows(table_, std::move(writes), NewDeadline(), std::move(done));
  });
}

absl::Status SystemRows::Put(std::string_view name, std::string_view value) {
  HbaseRowWrite write;
  write.row = RowOf(name);
  write.timestamp = context_->clock.Next(kNoSequence);
  write.value =
      EncodeCell({.version = write.timestamp, .writer = context_->writer, .value = value});
  return Commit(std::move(write));
}

absl::StatusOr<SequenceNumber> SystemRows::Replace(std::string_view name, const SystemRow& read,
                                                   std::string_view value) {
  const SequenceNumber version = context_->clock.Next(read.version);
  HbaseRowWrite write;
  write.row = RowOf(name);
  write.is_checked = true;
  write.expects_prefix = true;
  if (read.is_there) write.expected = read.identity;
  write.timestamp = version;
  write.value = EncodeCell({.version = version, .writer = context_->writer, .value = value});
  VARVE_RETURN_IF_ERROR(Commit(std::move(write)));
  return version;
}

absl::Status SystemRows::Remove(std::string_view name, const SystemRow& read) {
  HbaseRowWrite write;
  write.row = RowOf(name);
  write.is_checked = true;
  write.expects_prefix = true;
  write.expected = read.identity;
  write.kind = HbaseRowWrite::Kind::kDelete;
  write.timestamp = read.version;
  return Commit(std::move(write));
}

absl::Status SystemRows::CheckIsEmpty() {
  HbaseScanRequest request;
  request.max_rows = 1;
  request.keys_only = true;
  using Slice = absl::StatusOr<HbaseScanSlice>;
  const Slice slice = AwaitAnswer<Slice>([&](HbaseClient::ScanDone done) {
    context_->client->ScanRows(table_, request, NewDeadline(), std::move(done));
  });
  if (!slice.ok()) return slice.status();
  if (slice->rows.empty()) return absl::OkStatus();
  // Another server may have made the table the store's at the same moment.
  absl::StatusOr<std::vector<SystemRow>> rows = Read({kFormatRow});
  if (rows.ok() && rows->front().is_there) return absl::OkStatus();
  return rows.ok() || absl::IsDataLoss(rows.status()) ? IsForeign(table_) : rows.status();
}

absl::StatusOr<std::string> SystemRows::CheckFormat(const SystemRow& row,
                                                    std::string_view store) const {
  if (!row.value.starts_with(kMark) || row.value.size() <= kMark.size()) return IsForeign(table_);
  const auto format = static_cast<uint8_t>(row.value[kMark.size()]);
  if (format != kFormat) {
    return absl::FailedPreconditionError(fmt::format(
        "table {} has format {}, and this version of varve knows format {}; use the version that "
        "made it, or name another table (--hbase-table)",
        table_, format, kFormat));
  }
  std::string owner = row.value.substr(kMark.size() + 1);
  if (!store.empty() && owner != store) return IsOfAnotherStore(table_, owner, store);
  return owner;
}

absl::StatusOr<std::string> SystemRows::Open(std::string_view store) {
  const std::string name =
      store.empty() ? fmt::format("{:08x}", context_->writer) : std::string(store);
  for (;;) {
    absl::StatusOr<std::vector<SystemRow>> rows = Read({kFormatRow});
    if (absl::IsDataLoss(rows.status())) return IsForeign(table_);
    if (!rows.ok()) return rows.status();
    if (rows->front().is_there) return CheckFormat(rows->front(), store);
    VARVE_RETURN_IF_ERROR(CheckIsEmpty());
    const absl::Status made = Replace(kFormatRow, rows->front(), FormatValue(name)).status();
    // What another server has made is read and checked.
    if (!made.ok() && !absl::IsAborted(made)) return made;
  }
}

absl::Status SystemRows::CheckStore(std::string_view store) {
  absl::StatusOr<std::vector<SystemRow>> rows = Read({kFormatRow});
  if (!rows.ok() || !rows->front().is_there) return rows.status();
  return CheckFormat(rows->front(), store).status();
}

}  // namespace varve
