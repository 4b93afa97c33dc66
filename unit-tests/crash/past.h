// Whether a store tells of its past what its user knows: the histories of keys, and what was
// removed and can come back. Horizons may rise while a check looks.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "unit-tests/crash/contents.h"
#include "unit-tests/crash/history.h"
#include "varve/key_history.h"
#include "varve/storage_engine.h"
#include "varve/types.h"

namespace varve::testing {

// What a user knows of the store.
struct KnownPast {
  const History& history;
  SequenceNumber last;  // batch
  const Known& known;
};

// FailedPrecondition: the store tells of another history of the key than it has, and what. Other
// errors are the store's.
absl::Status CheckKeyHistory(StorageEngine* store, const KnownPast& past, NamespaceId space,
                             std::string_view key);

// FailedPrecondition: `removed`, which the store just found in [lower, upper), is not what was
// removed there, and why.
absl::Status CheckRemoved(StorageEngine* store, const KnownPast& past, NamespaceId space,
                          std::string_view lower, std::string_view upper,
                          const RemovedKeys& removed);

}  // namespace varve::testing
