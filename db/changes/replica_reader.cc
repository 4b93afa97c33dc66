#include "db/changes/replica_reader.h"

#include <algorithm>

#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Copies the commits of a block that lie in (`after`, `last`].
absl::Status CopyCommits(const ChangeBlock& block, SequenceNumber after, SequenceNumber last,
                         ChangeBlock* copy) {
  size_t begin = block.commits.size(), end = 0;
  uint32_t count = 0;
  for (size_t at = 0; at < block.commits.size();) {
    const size_t first = at;
    ChangeCommit commit;
    if (!ReadCommit(block, &at, &commit))
      return absl::InternalError("a block of changes makes no sense");
    if (commit.last <= after) continue;
    if (commit.last > last) break;
    begin = std::min(begin, first);
    end = at;
    ++count;
  }
  // Commits count from the version before the block and from the first instant: both stay.
  copy->after = block.after;
  copy->last = std::min(block.last, last);
  copy->first_ms = block.first_ms;
  copy->last_ms = block.last_ms;
  copy->dictionary = block.dictionary;
  copy->count = count;
  copy->commits.clear();
  if (count != 0) copy->commits.assign(block.commits, begin, end - begin);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReplicaReader::Next(size_t most_bytes) {
  return GuardMemory("reading changes", [&] { return NextUnguarded(most_bytes); });
}

absl::StatusOr<std::string> ReplicaReader::NextUnguarded(size_t most_bytes) {
  const SequenceNumber durable = durable_();
  std::string bytes;
  do {
    ChangeBlock block;
    absl::StatusOr<bool> read = ReadBlock(durable, &block);
    if (!read.ok() && !bytes.empty()) break;  // the next call tells of it
    VARVE_RETURN_IF_ERROR(read.status());
    if (!*read) break;
    bytes.append(EncodeChangeBlock(block, /*file_number=*/0, /*offset=*/0));
    position_ = block.last;
  } while (bytes.size() < most_bytes);
  return bytes;
}

absl::StatusOr<bool> ReplicaReader::ReadBlock(SequenceNumber durable, ChangeBlock* block) {
  if (durable <= position_) return false;
  SequenceNumber covered = kNoSequence;
  VARVE_ASSIGN_OR_RETURN(const bool read, recorder_.Read(position_, &place_, &covered));
  if (!read) {
    place_ = {};
    return false;
  }
  VARVE_RETURN_IF_ERROR(CopyCommits(place_.block, position_, durable, block));
  return block->last > position_;
}

}  // namespace varve
