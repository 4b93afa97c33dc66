#include "db/hbase_rpc/row_requests.h"

#include <Comparator.pb.h>
#include <Filter.pb.h>
#include <MultiRowMutation.pb.h>

#include <algorithm>

namespace varve {
namespace {

constexpr char kEqual[] = "org.apache.hadoop.hbase.filter.BinaryComparator";
constexpr char kBeginsWith[] = "org.apache.hadoop.hbase.filter.BinaryPrefixComparator";
constexpr char kComponent[] = "org.apache.hadoop.hbase.filter.BinaryComponentComparator";
constexpr char kValueFilter[] = "org.apache.hadoop.hbase.filter.ValueFilter";
constexpr char kFilterList[] = "org.apache.hadoop.hbase.filter.FilterList";

void AddCondition(const HbaseRowWrite& write, hbase::pb::MutateRowsRequest* request) {
  hbase::pb::Condition* condition = request->add_condition();
  condition->set_row(write.row);
  condition->set_family(kHbaseFamily.data(), kHbaseFamily.size());
  condition->set_qualifier("");
  condition->set_compare_type(hbase::pb::EQUAL);
  hbase::pb::Comparator* comparator = condition->mutable_comparator();
  // An empty value stands for a row that is not there.
  const std::string value = write.expected.value_or("");
  if (write.expects_prefix && !value.empty()) {
    hbase::pb::BinaryPrefixComparator begins_with;
    begins_with.mutable_comparable()->set_value(value);
    comparator->set_name(kBeginsWith);
    begins_with.SerializeToString(comparator->mutable_serialized_comparator());
  } else {
    hbase::pb::BinaryComparator equal;
    equal.mutable_comparable()->set_value(value);
    comparator->set_name(kEqual);
    equal.SerializeToString(comparator->mutable_serialized_comparator());
  }
}

void AddMutation(const HbaseRowWrite& write, hbase::pb::MutateRowsRequest* request) {
  using hbase::pb::MutationProto;
  MutationProto* mutation = request->add_mutation_request();
  mutation->set_row(write.row);
  const bool is_put = write.kind == HbaseRowWrite::Kind::kPut;
  mutation->set_mutate_type(is_put ? MutationProto::PUT : MutationProto::DELETE);
  // On the disks of all copies (`hsync`), whatever the settings of the cluster say.
  mutation->set_durability(MutationProto::FSYNC_WAL);
  MutationProto::ColumnValue* column = mutation->add_column_value();
  column->set_family(kHbaseFamily.data(), kHbaseFamily.size());
  MutationProto::ColumnValue::QualifierValue* cell = column->add_qualifier_value();
  cell->set_qualifier("");
  if (write.timestamp != 0) {
    mutation->set_timestamp(write.timestamp);
    cell->set_timestamp(write.timestamp);
  }
  if (is_put) {
    cell->set_value(write.value);
  } else {
    cell->set_delete_type(MutationProto::DELETE_MULTIPLE_VERSIONS);
  }
}

template <typename Filter>
void SetFilter(const char* name, const Filter& filter, hbase::pb::Filter* named) {
  named->set_name(name);
  filter.SerializeToString(named->mutable_serialized_filter());
}

// Passes values whose bytes from `offset` on compare so with `bytes`.
void AddComparison(size_t offset, const std::string& bytes, hbase::pb::CompareType how,
                   hbase::pb::FilterList* all) {
  hbase::pb::BinaryComponentComparator component;
  component.set_offset(static_cast<uint32_t>(offset));
  component.set_value(bytes);
  hbase::pb::ValueFilter filter;
  filter.mutable_compare_filter()->set_compare_op(how);
  hbase::pb::Comparator* comparator = filter.mutable_compare_filter()->mutable_comparator();
  comparator->set_name(kComponent);
  component.SerializeToString(comparator->mutable_serialized_comparator());
  SetFilter(kValueFilter, filter, all->add_filters());
}

// A list of filters that are all to pass asks them in their order and ends with the first that
// does not.
void FillFilter(const std::vector<HbaseValueTest>& tests, hbase::pb::Filter* filter) {
  hbase::pb::FilterList any;
  any.set_operator_(hbase::pb::FilterList::MUST_PASS_ONE);
  for (const HbaseValueTest& test : tests) {
    hbase::pb::FilterList all;
    all.set_operator_(hbase::pb::FilterList::MUST_PASS_ALL);
    for (const HbaseValueRange& range : test) {
      if (range.least == range.most) {
        AddComparison(range.offset, range.least, hbase::pb::EQUAL, &all);
        continue;
      }
      AddComparison(range.offset, range.least, hbase::pb::GREATER_OR_EQUAL, &all);
      AddComparison(range.offset, range.most, hbase::pb::LESS_OR_EQUAL, &all);
    }
    SetFilter(kFilterList, all, any.add_filters());
  }
  SetFilter(kFilterList, any, filter);
}

// Where a scan begins or ends. HBase takes no row there that is longer than any that it holds. The
// longest beginning of such a row does as well: no row is between the two.
struct RowBound {
  std::string row;
  bool is_cut;
};

RowBound BoundOf(const std::string& row) {
  return {row.substr(0, kHbaseMaxRowSize), row.size() > kHbaseMaxRowSize};
}

}  // namespace

void NameRegion(const Region& region, hbase::pb::RegionSpecifier* specifier) {
  specifier->set_type(hbase::pb::RegionSpecifier::REGION_NAME);
  specifier->set_value(region.name);
}

void FillGet(std::string_view row, hbase::pb::Get* get) {
  get->set_row(row.data(), row.size());
  hbase::pb::Column* column = get->add_column();
  column->set_family(kHbaseFamily.data(), kHbaseFamily.size());
  column->add_qualifier("");
}

hbase::pb::CoprocessorServiceRequest MutateRowsRequest(
    const Region& region, const std::vector<const HbaseRowWrite*>& writes) {
  hbase::pb::MutateRowsRequest mutate;
  for (const HbaseRowWrite* write : writes) {
    if (write->is_checked) AddCondition(*write, &mutate);
    if (write->kind != HbaseRowWrite::Kind::kCheckOnly) AddMutation(*write, &mutate);
  }
  NameRegion(region, mutate.mutable_region());
  hbase::pb::CoprocessorServiceRequest request;
  NameRegion(region, request.mutable_region());
  hbase::pb::CoprocessorServiceCall* call = request.mutable_call();
  call->set_row(writes.front()->row);
  call->set_service_name("MultiRowMutationService");
  call->set_method_name("MutateRows");
  mutate.SerializeToString(call->mutable_request());
  return request;
}

std::optional<bool> ReadMutateRowsAnswer(std::string_view message) {
  hbase::pb::CoprocessorServiceResponse response;
  hbase::pb::MutateRowsResponse mutated;
  if (!ParseMessage(message, &response) || !ParseMessage(response.value().value(), &mutated) ||
      !mutated.has_processed()) {
    return std::nullopt;
  }
  return mutated.processed();
}

hbase::pb::ScanRequest RegionScan(const Region& region, const HbaseScanRequest& request) {
  const auto rows = static_cast<uint32_t>(std::min<size_t>(request.max_rows, 100'000));
  hbase::pb::ScanRequest scan_request;
  NameRegion(region, scan_request.mutable_region());
  hbase::pb::Scan* scan = scan_request.mutable_scan();
  hbase::pb::Column* column = scan->add_column();
  column->set_family(kHbaseFamily.data(), kHbaseFamily.size());
  column->add_qualifier("");
  scan->set_reversed(request.is_descending);
  const RowBound lower = BoundOf(request.lower);
  const RowBound upper = BoundOf(request.upper);
  scan->set_start_row(request.is_descending ? upper.row : lower.row);
  scan->set_stop_row(request.is_descending ? lower.row : upper.row);
  // The lower bound is a row of the range and the upper one is none, unless they were cut.
  scan->set_include_start_row(request.is_descending ? upper.is_cut : !lower.is_cut);
  scan->set_include_stop_row(request.is_descending ? !lower.is_cut : upper.is_cut);
  scan->set_caching(rows);
  scan->set_max_result_size(request.max_bytes);
  // A sweep reads on in files as long as it likes, as servers do by themselves after some blocks.
  if (!request.is_sweep) scan->set_readtype(hbase::pb::Scan::PREAD);
  scan->set_cache_blocks(!request.is_sweep);
  if (!request.tests.empty()) FillFilter(request.tests, scan->mutable_filter());
  scan->set_need_cursor_result(true);
  scan_request.set_number_of_rows(rows);
  scan_request.set_limit_of_rows(rows);
  // The server keeps no scanner for the next slice.
  scan_request.set_close_scanner(true);
  scan_request.set_client_handles_partials(true);
  scan_request.set_client_handles_heartbeats(true);
  return scan_request;
}

bool TakeResult(const hbase::pb::Result& result, CellBlock* cells,
                std::vector<AnsweredCell>* taken) {
  for (const hbase::pb::Cell& cell : result.cell()) {
    taken->push_back({cell.row(), cell.qualifier(), cell.value()});
  }
  for (int i = 0; i < result.associated_cell_count(); ++i) {
    if (!cells->Next(&taken->emplace_back())) return false;
  }
  return true;
}

bool TakeScanResults(const hbase::pb::ScanResponse& response, std::string_view cells,
                     std::vector<std::vector<AnsweredCell>>* rows) {
  CellBlock block(cells);
  for (const hbase::pb::Result& result : response.results()) {
    if (!TakeResult(result, &block, &rows->emplace_back())) return false;
  }
  for (const uint32_t count : response.cells_per_result()) {
    std::vector<AnsweredCell>& row = rows->emplace_back();
    for (uint32_t i = 0; i < count; ++i) {
      if (!block.Next(&row.emplace_back())) return false;
    }
  }
  return true;
}

bool IsExpected(const HbaseRowWrite& write, const std::optional<std::string>& value) {
  if (!write.is_checked) return true;
  if (!write.expected.has_value() || !value.has_value()) return write.expected == value;
  return write.expects_prefix ? value->starts_with(*write.expected) : *value == *write.expected;
}

bool IsTooLate(const HbaseRowWrite& write, const std::optional<std::string>& value) {
  if (write.ascending == 0 || write.kind != HbaseRowWrite::Kind::kPut || !write.is_checked ||
      !value.has_value() || IsExpected(write, value))
    return false;
  const std::string_view there = *value;
  const std::string_view written = write.value;
  return there.substr(0, write.ascending) < written.substr(0, write.ascending);
}

bool IsWritten(const HbaseRowWrite& write, const std::optional<std::string>& value) {
  switch (write.kind) {
    case HbaseRowWrite::Kind::kPut:
      return value == write.value;
    case HbaseRowWrite::Kind::kDelete:
      return !value.has_value();
    case HbaseRowWrite::Kind::kCheckOnly:
      return false;
  }
  return false;
}

}  // namespace varve
