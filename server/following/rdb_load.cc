#include "server/following/rdb_load.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "server/execution/database_index.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kBatchBytes = 4u << 20;
constexpr size_t kBatchOperations = 64u << 10;

}  // namespace

absl::Status RdbLoad::Begin() {
  begun_ = true;
  VARVE_ASSIGN_OR_RETURN(const std::vector<NamespaceId> databases, Databases(*server_.store));
  databases_.insert(databases.begin(), databases.end());
  for (const NamespaceId database : databases) batch_.ClearNamespace(database);
  return absl::OkStatus();
}

std::optional<NamespaceId> RdbLoad::PlaceOf(const RdbItem& item) {
  if (item.database >= static_cast<uint64_t>(server_.options.databases)) {
    skipped_.Add(fmt::format("key of database {}", item.database), item.key);
    return std::nullopt;
  }
  if (item.key.size() > kMaxKeySize) {
    skipped_.Add("too long a key", item.key);
    return std::nullopt;
  }
  return static_cast<NamespaceId>(item.database);
}

absl::Status RdbLoad::Add(const RdbItem& item) {
  if (!begun_) VARVE_RETURN_IF_ERROR(Begin());
  if (!item.passed_over.empty()) {
    if (!item.key.empty()) ++keys_;
    skipped_.Add(item.passed_over, item.key);
    return absl::OkStatus();
  }
  ++keys_;
  if (item.expiry_ms != 0 && item.expiry_ms <= server_.store->NowMillis()) return absl::OkStatus();
  const std::optional<NamespaceId> database = PlaceOf(item);
  if (!database) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(Open(*database));
  batch_.Put(item.key, item.value, *database, item.expiry_ms != 0 ? item.expiry_ms : kNoExpiry);
  if (batch_.bytes() < kBatchBytes && batch_.size() < kBatchOperations) return absl::OkStatus();
  return Submit();
}

absl::Status RdbLoad::Open(NamespaceId database) {
  if (!databases_.insert(database).second) return absl::OkStatus();
  // By itself: a client may select the database meanwhile, which then is there already.
  WriteBatch create;
  create.CreateNamespace({.id = database});
  const absl::Status created = server_.store->Submit(WriteOptions(), &create).status();
  return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
}

absl::Status RdbLoad::Submit() {
  VARVE_ASSIGN_OR_RETURN(const CommitResult committed,
                         server_.store->Submit(WriteOptions(), &batch_));
  batch_.Clear();
  durable_after_ = std::max(durable_after_, committed.durable_after);
  // What clients keep of the old data, or have read since it went, is not true any more.
  if (server_.clients.tracking.Any()) server_.clients.tracking.InvalidateAll();
  return server_.store->Push();
}

absl::Status RdbLoad::Finish() {
  if (!begun_) VARVE_RETURN_IF_ERROR(Begin());
  if (!batch_.empty()) VARVE_RETURN_IF_ERROR(Submit());
  return server_.store->WaitUntilDurable(durable_after_);
}

}  // namespace varve
