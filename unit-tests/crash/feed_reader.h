// A reader of the change feed who keeps a copy of the store, is killed at random, and goes on from
// where he was last saved. What he is told must be every commit, whole, once and in order.
//
// Thread-safety: one thread uses a reader.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "unit-tests/crash/contents.h"
#include "unit-tests/crash/history.h"
#include "varve/changes.h"
#include "varve/storage_engine.h"
#include "varve/types.h"

namespace varve::testing {

class FeedReader {
 public:
  // What comes behind `last_known` is written by the store itself.
  explicit FeedReader(uint64_t seed, SequenceNumber last_known = kMaxSequence)
      : last_known_(last_known), random_(seed) {}

  // Takes the store's contents at `position` for the copy. Requires: they are in the history.
  void StartAt(SequenceNumber position, const History& history);
  bool started() const { return started_; }
  // He has been told, and has saved, everything up to here.
  SequenceNumber position() const { return saved_.position; }
  // He was told of something that ends here, and may have forgotten it.
  SequenceNumber told() const { return told_; }

  // Reads some commits, or is killed while he does. Sets `*at_end` to whether he has been told of
  // everything that the store delivers. FailedPrecondition: he is told something wrong. Other
  // errors are the store's.
  [[nodiscard]] absl::Status ReadSome(StorageEngine* store, const History& history, bool* at_end);
  // Compares the copy with what the store held at the version that he has reached.
  [[nodiscard]] absl::Status CheckCopy(const History& history) const;

 private:
  struct CopiedEntry {
    std::shared_ptr<const std::string> value;
    std::string metadata;
    uint64_t expiry_ms = kNoExpiry;
  };
  using Keys = std::map<std::string, CopiedEntry, std::less<>>;
  struct Copy {
    SequenceNumber position = kNoSequence;
    std::map<NamespaceId, Keys> spaces;
  };

  static Keys KeysOf(const SpaceContents& space);
  static absl::Status Compare(NamespaceId id, const Copy& copy, const Contents& contents);
  // Applies a commit of the user, or one of the store itself, which removes what has expired.
  absl::Status Apply(const Change& change, const History& history, Copy* copy);
  // `names`: the contents in which the namespaces have the names that the operation found.
  static void ApplyOperation(const ChangeOperation& operation, const Contents& names,
                             const Contents& after, Copy* copy);

  const SequenceNumber last_known_;
  std::mt19937_64 random_;
  bool started_ = false;
  SequenceNumber told_ = kNoSequence;
  Copy saved_;
};

}  // namespace varve::testing
