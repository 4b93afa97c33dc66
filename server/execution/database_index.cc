#include "server/execution/database_index.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "server/execution/request_checks.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {

std::optional<NamespaceId> ParseDatabase(CommandContext& context, std::string_view text) {
  using Limits = std::numeric_limits<int32_t>;
  int64_t index = 0;
  if (!ParseRespInteger(text, &index)) {
    context.reply.Error(kNoInteger);
    return std::nullopt;
  }
  if (index < Limits::min() || index > Limits::max()) {
    context.reply.Error(fmt::format("ERR value is out of range, value must between {} and {}",
                                    Limits::min(), Limits::max()));
    return std::nullopt;
  }
  if (index < 0 || index >= context.server.options.databases) {
    context.reply.Error("ERR DB index is out of range");
    return std::nullopt;
  }
  return static_cast<NamespaceId>(index);
}

bool OpenDatabase(CommandContext& context, NamespaceId database) {
  if (context.store.HasNamespace(database)) return true;
  WriteBatch batch;
  batch.CreateNamespace({.id = database});
  const absl::StatusOr<CommitResult> created = context.Commit(&batch);
  if (absl::IsAlreadyExists(created.status())) return true;  // somebody was faster
  if (!created.ok()) {
    context.Fail(created.status());
    return false;
  }
  context.Submitted();
  context.DependOn(created->durable_after);
  return true;
}

bool IsDatabaseNumber(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<NamespaceDescription> FindNamespace(CommandContext& context, std::string_view name) {
  const bool is_number = IsDatabaseNumber(name);
  std::optional<NamespaceId> database;
  if (is_number) {
    database = ParseDatabase(context, name);
    if (!database || !OpenDatabase(context, *database)) return std::nullopt;
  }
  const absl::StatusOr<NamespaceList> list = context.store.Namespaces();
  if (!list.ok()) {
    context.Fail(list.status());
    return std::nullopt;
  }
  context.DependOn(list->durable_after);
  const NamespaceDescription* const space = is_number ? list->Find(*database) : list->Find(name);
  if (space != nullptr) return *space;
  context.reply.Error(fmt::format("ERR there is no namespace '{}'", ShownInError(name)));
  return std::nullopt;
}

absl::StatusOr<std::vector<NamespaceId>> Databases(const StoreContents& store) {
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store.Namespaces());
  std::vector<NamespaceId> databases;
  for (const NamespaceDescription& space : list.namespaces) {
    if (space.id < kFirstNamedNamespace) databases.push_back(space.id);
  }
  return databases;
}

absl::StatusOr<CountResult> CountAllKeys(StoreContents& store) {
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store.Namespaces());
  CountResult all;
  for (const NamespaceDescription& space : list.namespaces) {
    const absl::StatusOr<CountResult> count = store.Count(NoWaitReadOptions(space.id), "", "");
    if (!count.ok() && !store.HasNamespace(space.id)) continue;  // dropped meanwhile
    VARVE_RETURN_IF_ERROR(count.status());
    all.keys += count->keys;
    all.bytes += count->bytes;
    all.durable_after = std::max(all.durable_after, count->durable_after);
  }
  return all;
}

}  // namespace varve
