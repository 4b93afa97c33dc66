#include "server/following/rdb_load.h"

#include <vector>

#include "absl/strings/match.h"
#include "fmt/format.h"
#include "server/execution/database_index.h"
#include "spdlog/spdlog.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kBatchBytes = 4u << 20;
constexpr size_t kBatchOperations = 64u << 10;
constexpr std::string_view kStagingPrefix = "redis-copy-";

// Creates a namespace, with the next id where it has a name.
absl::StatusOr<NamespaceId> Create(Store* store, NamespaceDescription space) {
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store->Namespaces());
    if (!space.name.empty()) space.id = list.next_id;
    WriteBatch batch;
    batch.CreateNamespace(space);
    const absl::Status created = store->Submit(WriteOptions(), &batch).status();
    if (created.ok()) return space.id;
    if (!absl::IsAlreadyExists(created)) return created;
    // A client has selected the database meanwhile, or taken the id.
    if (space.name.empty()) return space.id;
    if (list.Find(space.name) != nullptr) return created;
  }
}

}  // namespace

RdbLoad::~RdbLoad() {
  if (staging_.empty()) return;
  if (const absl::Status removed = RemoveLeftovers(server_.store); !removed.ok()) {
    spdlog::warn("What has come of a copy of Redis can't be removed now: {}",
                 std::string(removed.message()));
  }
}

absl::Status RdbLoad::RemoveLeftovers(Store* store) {
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store->Namespaces());
  WriteBatch batch;
  for (const NamespaceDescription& space : list.namespaces) {
    if (absl::StartsWith(space.name, {kStagingPrefix.data(), kStagingPrefix.size()}))
      batch.DropNamespace(space.id);
  }
  if (batch.empty()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(store->Submit(WriteOptions(), &batch).status());
  return store->Push();
}

absl::StatusOr<NamespaceId> RdbLoad::StagingOf(NamespaceId database) {
  if (const auto found = staging_.find(database); found != staging_.end()) return found->second;
  if (staging_.empty()) VARVE_RETURN_IF_ERROR(RemoveLeftovers(server_.store));
  VARVE_RETURN_IF_ERROR(Create(server_.store, {.id = database}).status());
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, server_.store->Namespaces());
  NamespaceDescription staging{.name = fmt::format("{}{}", kStagingPrefix, database)};
  if (const NamespaceDescription* const place = list.Find(database); place != nullptr) {
    // What decides how keys are kept. Its quota, and the usual expiry, are for its own writers.
    staging.options.value_separation_size = place->options.value_separation_size;
    staging.options.history = place->options.history;
    staging.options.compression = place->options.compression;
    staging.options.grouping = place->options.grouping;
  }
  VARVE_ASSIGN_OR_RETURN(const NamespaceId id, Create(server_.store, std::move(staging)));
  staging_.emplace(database, id);
  return id;
}

bool RdbLoad::Fits(const RdbItem& item) {
  if (!item.passed_over.empty()) {
    skipped_.Add(item.passed_over, item.key);
  } else if (item.database >= static_cast<uint64_t>(server_.options.databases)) {
    skipped_.Add(fmt::format("key of database {}", item.database), item.key);
  } else if (item.key.size() > kMaxKeySize) {
    skipped_.Add("too long a key", item.key);
  } else {
    return true;
  }
  return false;
}

absl::Status RdbLoad::Add(const RdbItem& item) {
  if (item.passed_over.empty() || !item.key.empty()) ++keys_;
  if (!Fits(item)) return absl::OkStatus();
  // Also one whose time is over: the primary may give it more in what it sends behind the copy.
  VARVE_ASSIGN_OR_RETURN(const NamespaceId staging,
                         StagingOf(static_cast<NamespaceId>(item.database)));
  batch_.Put(item.key, item.value, staging, item.expiry_ms != 0 ? item.expiry_ms : kNoExpiry);
  if (batch_.bytes() < kBatchBytes && batch_.size() < kBatchOperations) return absl::OkStatus();
  return Submit();
}

absl::Status RdbLoad::Submit() {
  VARVE_RETURN_IF_ERROR(server_.store->Submit({.independent_keys = true}, &batch_).status());
  batch_.Clear();
  return server_.store->Push();
}

absl::Status RdbLoad::Finish() {
  if (!batch_.empty()) VARVE_RETURN_IF_ERROR(Submit());
  VARVE_ASSIGN_OR_RETURN(const std::vector<NamespaceId> databases, Databases(*server_.store));
  WriteBatch batch;
  for (const NamespaceId database : databases) {
    if (!staging_.contains(database)) batch.ClearNamespace(database);
  }
  for (const auto& [database, staging] : staging_) {
    batch.SwapNamespaces(database, staging);
    batch.DropNamespace(staging);
  }
  VARVE_RETURN_IF_ERROR(server_.store->Write(WriteOptions(), &batch).status());
  staging_.clear();
  // What clients keep of the old data is not true any more.
  if (server_.clients.tracking.Any()) server_.clients.tracking.InvalidateAll();
  return absl::OkStatus();
}

}  // namespace varve
