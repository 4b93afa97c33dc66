// The embedded engine, and the header to begin with: it includes all that a program needs for
// reads, writes and namespaces. varve/transaction.h has transactions.
//
//   auto store = varve::StorageEngine::Open("data", {});
//   if (!store.ok()) ...
//   varve::WriteBatch batch;
//   batch.Put("city:1", "Zürich West");
//   auto committed = (*store)->Write({}, &batch);   // on disk when it returns
//
// Thread-safety: all functions are thread-safe. One process at a time has a directory open; a
// second Open fails with FailedPrecondition.
//
// The library installs no signal handlers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "varve/options.h"
#include "varve/replay_progress.h"
#include "varve/store.h"

namespace varve {

class StorageEngine : public Store {
 public:
  // Opens the store in `directory`, creating it (and missing parents) unless options say otherwise,
  // and recovers what a crash left. DataLoss: the manifest, or an acknowledged part of the log, is
  // damaged; the message names file and offset. `on_replay` is told how far the replay of the log
  // has come; null: nobody is.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<StorageEngine>> Open(
      const std::string& directory, const EngineOptions& options,
      const ReplayListener& on_replay = nullptr);

  // Write batches of one operation, with default options.
  [[nodiscard]] absl::Status Put(std::string_view key, std::string_view value);
  [[nodiscard]] absl::Status Delete(std::string_view key);
  [[nodiscard]] absl::Status DeleteRange(std::string_view begin, std::string_view end);
};

}  // namespace varve
