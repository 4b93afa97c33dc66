// The embedded engine: the public header of the library.
//
//   auto store = varve::StorageEngine::Open("data", {});
//   if (!store.ok()) ...
//   varve::WriteBatch batch;
//   batch.Put("city:1", "Zürich West");
//   auto committed = (*store)->Write({}, &batch);   // on disk when it returns
//
// Thread-safe. One process at a time has a directory open; a second Open fails with
// FailedPrecondition.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "varve/options.h"
#include "varve/store.h"

namespace varve {

class StorageEngine : public Store {
 public:
  // Opens the store in `directory`, creating it unless options say otherwise, and recovers what a
  // crash left. DataLoss: a damaged manifest or an acknowledged part of the log is damaged (file
  // and offset named).
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<StorageEngine>> Open(
      const std::string& directory, const EngineOptions& options);

  // One-operation batches of Write, with default options.
  [[nodiscard]] absl::Status Put(std::string_view key, std::string_view value);
  [[nodiscard]] absl::Status Delete(std::string_view key);
  [[nodiscard]] absl::Status DeleteRange(std::string_view begin, std::string_view end);
};

}  // namespace varve
