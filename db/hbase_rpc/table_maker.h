// TableMaker sees to it that a table is there: it asks the active master what the table is like and
// whether it is enabled, has it made where it is missing, and waits until its first region is open.
//
// Thread-safety: As HbaseCall.
#pragma once

#include <Master.pb.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "db/hbase_rpc/cluster_registry.h"
#include "db/hbase_rpc/hbase_call.h"

namespace varve {

// Returns what Varve has a table made with.
hbase::pb::TableSchema TableSchemaOf(const HbaseTableLayout& layout);
// Checks that a table that is there will do; FailedPrecondition says what is wrong with it.
absl::Status CheckTableSchema(const HbaseTableLayout& layout, const hbase::pb::TableSchema& schema);
// InvalidArgument: HBase has no such names, or cannot split tables like that.
absl::Status CheckTableLayout(const HbaseTableLayout& layout);

class TableMaker final : public HbaseCall {
 public:
  using Done = std::function<void(const absl::Status& status)>;

  TableMaker(CallEnvironment& environment, ClusterRegistry& registry, HbaseTableLayout layout,
             bool may_create, Time deadline, Done done)
      : HbaseCall(environment, layout.name, deadline),
        registry_(registry),
        layout_(std::move(layout)),
        may_create_(may_create),
        done_(std::move(done)) {}

 private:
  void Start() override { LookForMaster(); }
  void AnswerUndone(const absl::Status& why) override { done_(why); }

  void LookForMaster();
  void AskMaster(const char* method, const google::protobuf::MessageLite& parameter,
                 void (TableMaker::*then)(const RpcResult& result));
  void Describe();
  void TakeDescription(const RpcResult& result);
  void TakeState(const RpcResult& result);
  void Create();
  void TakeCreation(const RpcResult& result);
  void LookForRegion();
  // Begins anew after a pause.
  void BeginAgain(const absl::Status& why);

  ClusterRegistry& registry_;
  const HbaseTableLayout layout_;
  const bool may_create_;
  const Done done_;
  std::string master_;
  RetryPace pace_;
  bool is_created_ = false;
};

}  // namespace varve
