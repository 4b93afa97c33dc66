#include "server/execution/store_capability.h"

namespace varve {

bool StoreMeets(CommandContext& context, StoreNeed need) {
  const StoreCapabilities capabilities = context.server.store->capabilities();
  switch (need) {
    case StoreNeed::kSnapshots:
      if (capabilities.snapshots) return true;
      context.reply.Error("ERR the store of this server has no transactions over all keys");
      return false;
    case StoreNeed::kConstantTimeClone:
      if (capabilities.constant_time_clone) return true;
      context.reply.Error("ERR the store of this server can't clone a namespace");
      return false;
    case StoreNeed::kConstantTimeRangeDelete:
      if (capabilities.constant_time_range_delete) return true;
      context.reply.Error("ERR the store of this server can't delete a range in one step");
      return false;
    case StoreNeed::kExactCounts:
      if (capabilities.exact_counts) return true;
      context.reply.Error("ERR the store of this server keeps no exact count of its keys");
      return false;
  }
  return true;
}

}  // namespace varve
