#include "db/hbase_rpc/table_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "db/hbase_rpc/row_requests.h"

namespace varve {
namespace {

using Split = HbaseTableLayout::Split;
using Attributes = std::map<std::string, std::string>;

constexpr char kCoprocessor[] = "coprocessor$1";
constexpr char kMutateRows[] = "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint";
// Coprocessor.PRIORITY_USER.
constexpr int kUserPriority = 1'073'741'823;

constexpr char kSplitType[] = "hbase.regionserver.region.split_restriction.type";
constexpr char kSplitLength[] = "hbase.regionserver.region.split_restriction.prefix_length";
constexpr char kSplitDelimiter[] = "hbase.regionserver.region.split_restriction.delimiter";

// Returns the attributes of a table that restrict its splits.
Attributes SplitAttributes(const HbaseTableLayout& layout) {
  switch (layout.split) {
    case Split::kNoRestriction:
      return {};
    case Split::kKeyPrefix:
      return {{kSplitType, "KeyPrefix"}, {kSplitLength, std::to_string(layout.prefix_length)}};
    case Split::kDelimited:
      return {{kSplitType, "DelimitedKeyPrefix"},
              {kSplitDelimiter, std::string(1, layout.delimiter)}};
  }
  return {};
}

void AddAttribute(const std::string& name, const std::string& value,
                  google::protobuf::RepeatedPtrField<hbase::pb::BytesBytesPair>* attributes) {
  hbase::pb::BytesBytesPair* attribute = attributes->Add();
  attribute->set_first(name);
  attribute->set_second(value);
}

void NameTable(const std::string& table, hbase::pb::TableName* name) {
  const size_t colon = table.find(':');
  name->set_namespace_(colon == std::string::npos ? "default" : table.substr(0, colon));
  name->set_qualifier(colon == std::string::npos ? table : table.substr(colon + 1));
}

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

absl::Status NotOurs(const std::string& table, std::string_view what) {
  return absl::FailedPreconditionError(
      fmt::format("HBase's table '{}' is not one that Varve can use: {}; name another table, or "
                  "have Varve make one",
                  table, what));
}

absl::Status MasterIsAway(const absl::Status& why) {
  return absl::UnavailableError(fmt::format(
      "the master of HBase, which checks and makes tables, cannot be asked at the moment: {}",
      std::string(why.message())));
}

}  // namespace

absl::Status CheckTableLayout(const HbaseTableLayout& layout) {
  const size_t colon = layout.name.find(':');
  const std::string name = colon == std::string::npos ? layout.name : layout.name.substr(colon + 1);
  const bool is_named = !name.empty() && std::all_of(name.begin(), name.end(), IsNameByte) &&
                        name.front() != '.' && name.front() != '-' && colon != 0 &&
                        (colon == std::string::npos ||
                         std::all_of(layout.name.begin(), layout.name.begin() + colon, IsNameByte));
  if (!is_named) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no name of a table: HBase takes letters, digits, '_', '-' and '.', and does not "
        "let a name begin with '-' or '.'; a namespace of HBase stands before a ':'",
        layout.name));
  }
  if (layout.split == Split::kKeyPrefix && layout.prefix_length <= 0) {
    return absl::InvalidArgumentError("a prefix that regions keep together has one byte at least");
  }
  const auto delimiter = static_cast<unsigned char>(layout.delimiter);
  // Settings of tables are text in UTF-8 there, where a byte above makes another one of it.
  if (layout.split == Split::kDelimited && delimiter >= 0x80) {
    return absl::InvalidArgumentError(fmt::format(
        "HBase takes a byte from 0x00 to 0x7f as a delimiter, and not 0x{:02x}", delimiter));
  }
  return absl::OkStatus();
}

hbase::pb::TableSchema TableSchemaOf(const HbaseTableLayout& layout) {
  hbase::pb::TableSchema schema;
  NameTable(layout.name, schema.mutable_table_name());
  AddAttribute(kCoprocessor, fmt::format("|{}|{}|", kMutateRows, kUserPriority),
               schema.mutable_attributes());
  for (const auto& [name, value] : SplitAttributes(layout)) {
    AddAttribute(name, value, schema.mutable_attributes());
  }
  hbase::pb::ColumnFamilySchema* family = schema.add_column_families();
  family->set_name(std::string(kHbaseFamily));
  AddAttribute("VERSIONS", "1", family->mutable_attributes());
  return schema;
}

absl::Status CheckTableSchema(const HbaseTableLayout& layout,
                              const hbase::pb::TableSchema& schema) {
  if (schema.column_families_size() != 1 || schema.column_families(0).name() != kHbaseFamily) {
    return NotOurs(layout.name, fmt::format("it takes one column family, '{}'", kHbaseFamily));
  }
  for (const auto& attribute : schema.column_families(0).attributes()) {
    if (attribute.first() == "TTL" && attribute.second() != "2147483647") {
      return NotOurs(layout.name, "HBase removes its values after some time (TTL)");
    }
  }
  Attributes split;
  bool has_coprocessor = false;
  for (const auto& attribute : schema.attributes()) {
    const std::string& name = attribute.first();
    if (name == kSplitType || name == kSplitLength || name == kSplitDelimiter) {
      split[name] = attribute.second();
    }
    has_coprocessor |= name.starts_with("coprocessor$") &&
                       attribute.second().find(kMutateRows) != std::string::npos;
  }
  if (!has_coprocessor) {
    return NotOurs(layout.name, fmt::format("it lacks the coprocessor {}", kMutateRows));
  }
  if (split != SplitAttributes(layout)) {
    return NotOurs(layout.name,
                   fmt::format("its regions are split by other rules ({}...)", kSplitType));
  }
  return absl::OkStatus();
}

void TableMaker::LookForMaster() {
  const auto self = shared_from_this();
  registry_.FindMaster([this, self](const absl::StatusOr<std::string>& server) {
    if (has_ended()) return;
    if (!server.ok()) return BeginAgain(MasterIsAway(server.status()));
    master_ = *server;
    Describe();
  });
}

void TableMaker::AskMaster(const char* method, const google::protobuf::MessageLite& parameter,
                           void (TableMaker::*then)(const RpcResult& result)) {
  const auto self = shared_from_this();
  environment().servers.Call(master_, kMasterService, method, parameter,
                             environment().context.AttemptEnd(deadline()),
                             [this, self, then](const RpcResult& result) {
                               if (!has_ended()) (this->*then)(result);
                             });
}

void TableMaker::Describe() {
  hbase::pb::GetTableDescriptorsRequest request;
  NameTable(layout_.name, request.add_table_names());
  AskMaster("GetTableDescriptors", request, &TableMaker::TakeDescription);
}

void TableMaker::TakeDescription(const RpcResult& result) {
  hbase::pb::GetTableDescriptorsResponse response;
  absl::Status status;
  bool is_final = false;
  if (result.failure.has_value()) {
    status = result.failure->status;
    is_final = result.failure->is_final();
  } else if (!ParseMessage(result.message, &response)) {
    status = absl::UnavailableError("the master of HBase sent a damaged answer");
  }
  const bool is_missing = status.ok() ? response.table_schema_size() == 0
                                      : status.code() == absl::StatusCode::kNotFound;
  if (is_missing && is_created_)
    return BeginAgain(absl::UnavailableError("the table is being made"));
  if (is_missing && may_create_) return Create();
  if (is_missing) {
    return GiveUp(absl::NotFoundError(fmt::format(
        "HBase has no table '{}', and Varve may not make it (--hbase-create=no)", layout_.name)));
  }
  if (is_final) return GiveUp(status);
  if (!status.ok()) return BeginAgain(MasterIsAway(status));
  status = CheckTableSchema(layout_, response.table_schema(0));
  if (!status.ok()) return GiveUp(status);
  hbase::pb::GetTableStateRequest request;
  NameTable(layout_.name, request.mutable_table_name());
  AskMaster("GetTableState", request, &TableMaker::TakeState);
}

// Nobody else says that a table is disabled: its regions are found, and served nowhere.
void TableMaker::TakeState(const RpcResult& result) {
  using hbase::pb::TableState;
  hbase::pb::GetTableStateResponse response;
  if (result.failure.has_value() && result.failure->is_final()) return LookForRegion();
  if (result.failure.has_value() || !ParseMessage(result.message, &response)) {
    return BeginAgain(absl::UnavailableError("the master of HBase did not tell a table's state"));
  }
  const TableState::State state = response.table_state().state();
  if (state == TableState::ENABLED || state == TableState::ENABLING) return LookForRegion();
  GiveUp(absl::FailedPreconditionError(
      fmt::format("HBase's table '{}' is disabled; enable it (`enable '{}'` in `hbase shell`), or "
                  "name another table",
                  layout_.name, layout_.name)));
}

void TableMaker::Create() {
  hbase::pb::CreateTableRequest request;
  *request.mutable_table_schema() = TableSchemaOf(layout_);
  AskMaster("CreateTable", request, &TableMaker::TakeCreation);
}

// Another server of Varve may have had the table made at the same moment.
void TableMaker::TakeCreation(const RpcResult& result) {
  const bool is_there = result.failure.has_value() &&
                        result.failure->status.code() == absl::StatusCode::kAlreadyExists;
  if (result.failure.has_value() && result.failure->is_final() && !is_there) {
    return GiveUp(result.failure->status);
  }
  is_created_ = !result.failure.has_value();
  BeginAgain(is_created_ ? absl::UnavailableError("the table is being made")
                         : result.failure->status);
}

void TableMaker::LookForRegion() {
  const auto self = shared_from_this();
  environment().locator.Find({table(), "", false}, deadline(),
                             [this, self](const absl::StatusOr<RegionPtr>& region) {
                               if (has_ended()) return;
                               if (!region.ok()) return BeginAgain(region.status());
                               if (End()) done_(absl::OkStatus());
                             });
}

void TableMaker::BeginAgain(const absl::Status& why) {
  TryLater({HbaseFailure::Kind::kBusy, false, why}, nullptr, pace_, [this] { LookForMaster(); });
}

}  // namespace varve
