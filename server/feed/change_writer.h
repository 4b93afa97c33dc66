// The change writer writes commits of the change feed as replies have them:
//
//   operation: [op, namespace, key, value, expires-ms, previous value]
//   in full:   [op, namespace, key, value, expires-ms, previous value, metadata,
//               number of the namespace]
//
// Thread-safety: one thread at a time uses a writer.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "server/feed/visible_changes.h"
#include "util/resp/resp_writer.h"
#include "varve/store.h"

namespace varve {

class ChangeWriter {
 public:
  // `with_previous`: the values before are read from the store's history. `full`: a copy of the
  // store can be kept from what is written.
  ChangeWriter(Store* store, bool with_previous, bool full)
      : store_(*store), with_previous_(with_previous), full_(full) {}

  // Writes the array of operations.
  void WriteOperations(const Change& change, absl::Span<const ShownOperation> operations,
                       RespWriter* reply);

 private:
  void WritePrevious(const Change& change, const ChangeOperation& operation, RespWriter* reply);

  Store& store_;
  const bool with_previous_;
  const bool full_;
};

// Returns the version, a time or another figure as the integer of a reply.
inline int64_t AsInteger(uint64_t figure) { return static_cast<int64_t>(figure); }

}  // namespace varve
