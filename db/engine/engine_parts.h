// Plain values that the parts of the engine (db/engine/engine.h) hand to each other. Each is one
// thread's, but where it says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/counting/key_ledger.h"
#include "db/format/key_tally.h"
#include "db/format/range_tombstone.h"
#include "db/namespaces/namespace_table.h"
#include "db/version/super_version.h"
#include "db/write_buffer/write_buffer.h"
#include "structure/published.h"
#include "type/tree_key.h"
#include "util/base/sharded_counter.h"
#include "varve/store.h"
#include "varve/types.h"

namespace varve {

struct EngineParts {
  // A write buffer that takes no more writes, with the namespaces as they were at its end.
  struct FullBuffer {
    std::shared_ptr<WriteBuffer> buffer;
    NamespaceTable namespaces;
    uint64_t log_bytes = 0;  // about so many it takes in the log, with headers and padding
  };
  // A generation that its namespace has left; kNoGeneration: there was no such namespace. Known
  // until the switch is in segments and no snapshot is older.
  struct LeftGeneration {
    NamespaceId space;
    NamespaceGeneration generation;
    SequenceNumber left_at;
  };
  // A request to merge a range, waiting for the compaction thread.
  struct CompactRequest {
    std::string lower;
    std::string upper;
    bool done = false;  // guarded by commit_mutex_, like status
    absl::Status status;
  };
  // What a count starts from, all of one moment.
  struct CountPoint {
    std::shared_ptr<const SuperVersion> state;
    SequenceNumber at = kNoSequence;  // everything up to here is in the state, and nothing newer
    KeyLedger ledger;                 // of the state's version
    std::map<SequenceNumber, KeyTallies> buffers;
    uint64_t epoch = 0;
    KeyTallies bases;  // as Manifest::base_tallies

    // The segments of its tree for which nothing is known, and which hold something of a generation
    // in use.
    std::vector<KeyLedger::UnsettledSegment> Unsettled() const;
  };
  // The moment at which a namespace was cloned.
  struct Cut {
    NamespaceBase base;
    CountPoint before;
  };
  // How far a write buffer has been looked through, and what that part of it changes.
  struct BufferProgress {
    std::shared_ptr<WriteBuffer> buffer;
    SequenceNumber at = kNoSequence;
    WriteBuffer::Position position;
    uint64_t walked = 0;  // records
    KeyTallies change;
    uint64_t epoch = 0;
  };
  // Records and range tombstones, some of all that is newer than what they are laid upon.
  struct Layer {
    std::shared_ptr<const SuperVersion> below;  // read at below_at
    SequenceNumber below_at = kMaxSequence;
    // The layer's records are those with a sequence in (after, to].
    SequenceNumber after = kNoSequence;
    SequenceNumber to = kMaxSequence;
    RangeTombstoneList tombstones;
  };
  // What a read sees: the state and a sequence for which that state is complete.
  struct ReadPoint {
    Published<SuperVersion>::Pin state;
    SequenceNumber sequence;
    NamespaceGeneration generation;
  };
  // A record of the expiry index (db/format/expiry_index.h).
  struct Expiring {
    std::string bytes;  // its tree key and value
    uint64_t hash;      // of the key
    SequenceNumber sequence;
    int width;
    uint64_t due_ms;
  };
  // Removing what has expired among the entries of the index of one width.
  static constexpr uint64_t kNeverDue = ~uint64_t{0};
  struct Sweeping {
    int width = 0;
    uint64_t now_ms = 0;
    bool early = false;              // also what isn't due
    uint64_t from_ms = 0;            // no entry is due before
    uint64_t last_due_ms = 0;        // the entries that are looked at
    uint64_t resume_ms = kNeverDue;  // no entry that is left is due before
    bool more = false;               // it stopped before the end
  };
  // What a batch changes beside its own records: made before the batch is in the log.
  struct StateChange {
    std::vector<Expiring> expiring;
    uint64_t clock_mark = 0;
    SequenceNumber clock_mark_sequence = kNoSequence;
    std::vector<RangeTombstone> tombstones;
    std::vector<LeftGeneration> left;
    std::vector<RangeTombstone> buffered_tombstones;  // those of `tombstones` once more
    std::unique_ptr<Cut> cut;                         // of a clone; else null
    std::shared_ptr<SuperVersion> next;               // null: the state stays
  };
  // Batches that are committed, and who is to be told when they are durable.
  using AsyncWrites =
      std::multimap<SequenceNumber,
                    std::pair<CommitResult, std::function<void(absl::StatusOr<CommitResult>)>>>;
  // For the statistics. Thread-safe.
  struct Counters {
    std::atomic<uint64_t> flushes{0}, compactions{0}, failed_compactions{0}, flushed_bytes{0},
        compacted_bytes{0}, compaction_input_bytes{0};
    std::atomic<uint64_t> expired{0}, clock_marks{0};
    std::atomic<uint64_t> own_operations{0};  // marks, and what removing took
    ShardedCounter gets, writes, conflicts;
  };
};

}  // namespace varve
