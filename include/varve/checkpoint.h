// A checkpoint is a directory with the files of a store as of one version, made while the store
// goes on. The directory is a store itself: StorageEngine::Open() opens it, or a copy of it.
//
//   auto checkpoint = CreateCheckpoint(store, "data/checkpoint");
//   if (checkpoint.ok()) ... copy "data/checkpoint", then remove it
//
// Segments and value files never change, so the checkpoint has hard links to them. The store goes
// on without these files when merges replace them; the checkpoint keeps them, and their space,
// until somebody removes it. What was in write buffers alone is flushed first, so there is no log.
// Old versions that the store keeps are in the checkpoint and can be read there; feeds and retained
// changes are not.
//
// A checkpoint has the store's id and history id. Whoever goes on writing to a copy gives it others
// (tools/backup/restore.h), so that no version means two things.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "varve/types.h"

namespace varve {

struct CheckpointFile {
  std::string name;  // in the directory
  uint64_t size = 0;
};

struct Checkpoint {
  SequenceNumber version = kNoSequence;  // the newest that it holds
  uint64_t instant_ms = 0;               // when that was committed; 0: the store keeps no times
  uint64_t store_id = 0;
  uint64_t history_id = 0;            // 0: the store's format has none
  std::vector<CheckpointFile> files;  // the manifest is the last one
};

class Store;

// A store that makes checkpoints, as the embedded engine does.
class CheckpointedStore {
 public:
  virtual ~CheckpointedStore() = default;
  [[nodiscard]] virtual absl::StatusOr<Checkpoint> CreateCheckpoint(
      const std::string& directory) = 0;
  virtual std::string StoreDirectory() const = 0;
};

// Makes a checkpoint of everything that was written before the call. It is on disk when the
// function returns; after an error the directory is empty, as far as its files can be removed.
// FailedPrecondition: the directory is not empty. Unimplemented: the store makes none, or its file
// system has no hard links.
// Requires: the directory is missing or empty, and in the file system of the store.
[[nodiscard]] absl::StatusOr<Checkpoint> CreateCheckpoint(Store* store,
                                                          const std::string& directory);
// Returns the directory that the store was opened with. Unimplemented: the store makes no
// checkpoints.
[[nodiscard]] absl::StatusOr<std::string> StoreDirectory(const Store& store);

}  // namespace varve
