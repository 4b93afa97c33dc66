#include "tools/backup/rewind.h"

#include <fmt/format.h>

#include <random>
#include <string>

#include "util/base/status.h"
#include "varve/namespace.h"
#include "varve/write_batch.h"

namespace varve {
namespace {

absl::Status Write(Store* store, WriteBatch* batch) { return store->Write({}, batch).status(); }

absl::Status Drop(Store* store, NamespaceId space) {
  WriteBatch batch;
  batch.DropNamespace(space);
  return Write(store, &batch);
}

// A clone takes the namespace's place, and goes with what that held.
absl::Status Rewind(const NamespaceDescription& space, SequenceNumber version, Store* store) {
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store->Namespaces());
  NamespaceDescription clone{.id = list.next_id};
  std::random_device device;
  do {
    clone.name = fmt::format("restored-{:08x}", device());
  } while (list.Find(clone.name) != nullptr);
  clone.options.history = HistoryLimits{};  // it keeps nothing of its own
  clone.options.grouping = space.options.grouping;
  WriteBatch batch;
  batch.CloneNamespaceAt(space.id, version, clone);
  VARVE_RETURN_IF_ERROR(Write(store, &batch));
  batch.Clear();
  batch.SwapNamespaces(space.id, clone.id);
  VARVE_RETURN_IF_ERROR(Write(store, &batch));
  return Drop(store, clone.id);
}

}  // namespace

absl::Status RewindStore(const RestorePlan& plan, Store* store) {
  // Those that come back may have the names of those that go.
  for (const NamespaceDescription& space : plan.dropped)
    VARVE_RETURN_IF_ERROR(Drop(store, space.id));
  for (const NamespaceDescription& space : plan.rewound)
    VARVE_RETURN_IF_ERROR(Rewind(space, plan.version, store));
  for (const NamespaceDescription& space : plan.brought_back) {
    WriteBatch batch;
    batch.CloneNamespaceAt(space.id, plan.version, space);
    VARVE_RETURN_IF_ERROR(Write(store, &batch));
  }
  return store->Flush();
}

}  // namespace varve
