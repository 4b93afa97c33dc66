// A change purge rewrites the change files that hold an operation on one user key, so that nothing
// of the key is left in them. Every other operation stays as it is, and so do the versions that
// each block covers: positions of readers and feeds hold on, and a reader goes from the old file to
// the new one between two blocks.
//
// A key is purged in a namespace, and an operation of the feed knows the namespace's id at its time
// alone. The operations that go are those of what the namespace holds now, or held when it was
// emptied: a swap between then and now leads to another id.
//
// The caller goes through these steps (db/engine/purger.h):
//   1. Begin() has everything up to purged.up_to written to files that nobody writes to any more,
//      and looks through them.
//   2. RewriteSome() writes new files beside some of the old ones, syncs them and their directory,
//      and puts them into the places of the old ones. A crash leaves them as orphans.
//   3. The caller installs a manifest, which names the new files and has the old ones removed. It
//      goes on with step 2 until there is nothing more.
// A step that fails leaves the old files in their places, or new ones that the next install names.
//
// A deleted range keeps its bounds: a user named them. An ingest whose first or last key is the
// purged one gets a bound outside of it that says nothing of the key.
//
// Thread-safety: one thread at a time uses a purge; the recorder goes on beside it. Its locks are
// not held while files are read and rewritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/changes/change_block.h"
#include "db/changes/change_file.h"
#include "db/changes/change_recorder.h"
#include "varve/types.h"

namespace varve {

struct PurgedChanges {
  NamespaceId space = kDefaultNamespace;
  std::string key;
  SequenceNumber up_to = kNoSequence;  // what is newer stays
};

class ChangePurge {
 public:
  // RewriteSome() goes on until it has rewritten files of so many bytes.
  static constexpr uint64_t kMostAtOnce = uint64_t{256} << 20;

  // Requires: the recorder outlives the purge; one purge at a time.
  ChangePurge(ChangeRecorder* recorder, PurgedChanges purged, uint64_t most_at_once = kMostAtOnce)
      : recorder_(*recorder), purged_(std::move(purged)), most_at_once_(most_at_once) {}
  // Lets the recorder go on with the file that it wrote to, unless it has begun another one.
  ~ChangePurge();
  ChangePurge(const ChangePurge&) = delete;
  ChangePurge& operator=(const ChangePurge&) = delete;

  // Unavailable: changes could not be written. DataLoss: a file is damaged.
  [[nodiscard]] absl::Status Begin();
  // Returns whether there is more to rewrite. An error leaves the files of this call as they were.
  // Requires: Begin() returned OK.
  [[nodiscard]] absl::StatusOr<bool> RewriteSome();
  // Returns how many operations have gone, or no longer name the key.
  uint64_t operations() const { return operations_; }

  // Returns the numbers of the files that the recorder retains.
  static std::set<uint64_t> LiveFiles(const ChangeRecorder& recorder);

 private:
  struct Source {
    std::shared_ptr<ChangeFile> file;
    uint64_t size = 0;
  };
  struct Replacement {
    std::shared_ptr<ChangeFile> old;
    std::shared_ptr<ChangeFile> file;
    uint64_t size = kChangeFileHeaderSize;
    uint64_t operations = 0;  // that went
    // The end of each block, in the old file and in the new one.
    std::vector<std::pair<uint64_t, uint64_t>> ends;
  };
  // A change of a namespace that the feed tells of.
  struct Event {
    SequenceNumber version = kNoSequence;
    ChangeOperation::Kind kind = ChangeOperation::Kind::kFlush;
    NamespaceId space = kDefaultNamespace;
    NamespaceId other = kDefaultNamespace;  // of a swap
  };
  // From the version `first` on up to the stretch before, what is purged was under these ids.
  struct Stretch {
    SequenceNumber first = kNoSequence;
    std::vector<NamespaceId> spaces;
  };

  // Has the recorder write out what is purged, takes its file away from it, and notes the files as
  // sources.
  absl::Status Seal();
  // Looks for the key, in any namespace, and for events.
  absl::StatusOr<bool> Search(const Source& source, std::vector<Event>* events) const;
  void FollowBack(std::vector<Event> events);
  // Returns whether the operation names the key where it is purged.
  bool NamesPurged(const ChangeRecord& record, NamespaceId space) const;
  bool NamesPurged(const ChangeBlock& block) const;
  absl::StatusOr<bool> NamesPurged(const Source& source) const;
  // Returns the block without what names the key, and adds how many operations that were.
  ChangeBlock Filter(const ChangeBlock& block, uint64_t* operations) const;
  absl::Status Rewrite(const Source& source, Replacement* replacement) const;
  // Puts the new files into the places of the old ones. Throws std::bad_alloc; then nothing has
  // changed.
  void Replace(const std::vector<Replacement>& replacements);

  ChangeRecorder& recorder_;
  const PurgedChanges purged_;
  const uint64_t most_at_once_;
  std::deque<Source> sources_;        // that may hold the key and were not rewritten yet
  std::vector<Stretch> stretches_;    // the newest first
  std::shared_ptr<ChangeFile> left_;  // that the recorder wrote to; null: none
  uint64_t began_ms_ = 0;             // as the recorder has it of that file
  uint64_t operations_ = 0;
};

}  // namespace varve
