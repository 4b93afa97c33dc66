// A commit replay writes commits that a change feed told of to another store, which has what the
// first one had before them. Several commits become one write batch; each batch ends with a commit.
//
// Namespaces are known by their numbers, so one that was given another name is given it here, too,
// with the first change behind that. If another one takes its name before, it is called
// "renamed-" and its number until then. A namespace that a replay creates has the groups of keys
// that it had, and no other options, which the feed does not tell.
//
// Thread-safety: one thread at a time uses a replay, and any thread may call NowMillis().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "varve/changes.h"
#include "varve/namespace.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

// Returns why the commit can't be replayed from what the feed tells of it; empty: it can.
std::string WhyNotReplayed(const Change& commit);

class CommitReplay {
 public:
  CommitReplay() = default;
  CommitReplay(const CommitReplay&) = delete;
  CommitReplay& operator=(const CommitReplay&) = delete;

  // Begins to write to the store. Requires: nobody else writes to it, and it outlives the replay.
  [[nodiscard]] absl::Status Begin(Store* store);
  // Writes the commit, or notes it for the next batch. FailedPrecondition: the store has no such
  // namespace, or the commit can't be replayed; the message names the version.
  [[nodiscard]] absl::Status Apply(const Change& commit);
  // Writes what was noted.
  [[nodiscard]] absl::Status End() { return WriteBatchOut(); }

  // Returns the instant of the commits that are being written; 0: there was none yet.
  uint64_t NowMillis() const { return now_ms_.load(std::memory_order_relaxed); }
  // Returns the names of namespaces that were created without the options that they had.
  const std::set<std::string>& created() const { return created_; }
  // Returns those of namespaces whose own names are not known.
  std::set<std::string> Unnamed() const;

 private:
  absl::Status ApplyOperation(const Change& commit, const ChangeOperation& operation);
  void ApplyToKey(const ChangeOperation& operation);
  absl::Status ApplyToSpace(const Change& commit, const ChangeOperation& operation);
  absl::Status Create(const Change& commit, const ChangeOperation& operation);
  absl::Status Clone(const Change& commit, const ChangeOperation& operation);
  // Gives the namespace the name that the operation knows it by. FailedPrecondition: there is none.
  absl::Status Follow(const Change& commit, const ChangeOperation& operation);
  absl::StatusOr<NamespaceId> OtherOf(const Change& commit, const ChangeOperation& operation) const;
  void NoteSpace(const NamespaceDescription& space);
  void Rename(const std::string& name, NamespaceDescription* space);
  // Takes the name from the namespace that had it.
  void FreeName(const std::string& name);
  absl::Status WriteBatchOut();

  Store* store_ = nullptr;
  WriteBatch batch_;
  std::map<NamespaceId, NamespaceDescription> spaces_;
  std::set<std::string> created_;
  std::atomic<uint64_t> now_ms_{0};
};

}  // namespace varve
