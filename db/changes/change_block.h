// A change block holds consecutive commits as readers of the change feed see them. It stands by
// itself: the names of the namespaces that occur are in it. A block lies in a change file
// (db/changes/change_file.h) or, while commits are added to it, in memory alone.
//
//   header, 56 bytes
//      0   4  checksum of bytes 4..56, seed: the file's number XOR the block's offset
//      4   4  checksum of everything behind the header, same seed
//      8   4  size of everything behind the header
//     12   4  size of the dictionary
//     16   8  the version before the block: the block covers every version behind it ...
//     24   8  ... up to this one, the last of a commit
//     32   8  the instant of its first commit, in ms since the epoch
//     40   8  the instant of its last commit
//     48   4  flags: 0. 1 is reserved for a block whose rest is compressed
//     52   4  number of commits
//   dictionary: of each namespace, under each name that it had: id (varint32), name (varint32 size,
//     bytes)
//   commits, ascending, of each:
//      v  last version less the version before the block (varint64)
//      v  instant less that of the first commit (varint64)
//      v  size of the operations (varint32)
//      .  operations, of each:
//         1  kind (ChangeOperation::Kind) | 0x20: has an expiry | 0x40: has metadata
//         v  index in the dictionary, last version of the commit less that of the operation, size
//            of the key, size of the value (varint32 each)
//         8  expiry in ms since the epoch           (0x20)
//         v  varint32 size and bytes of metadata    (0x40)
//         .  key, value
//
// An operation on a whole namespace has, as its metadata, the operation as the log has it
// (db/format/log_format.h), and so has one that followers of the store need and no reader of the
// feed sees (kStoresOwn). Other operations of the store's own take no room, nor does a commit of
// such operations; the block covers their versions. The value of a kSwap is the id of the other
// namespace (4 bytes), which no reader is shown. That of a kClone of the past is the version, as
// decimal text.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "varve/changes.h"
#include "varve/types.h"

namespace varve {

inline constexpr size_t kChangeBlockHeaderSize = 56;
// A block that has this many bytes takes no further commit.
inline constexpr size_t kChangeBlockSize = size_t{64} << 10;

// The kind of an operation of the store's own: another description of a namespace, or a change of a
// feed.
inline constexpr auto kStoresOwn = static_cast<ChangeOperation::Kind>(0x1f);

// Returns whether operations of the kind concern a namespace as a whole.
bool ConcernsNamespace(ChangeOperation::Kind kind);

// A namespace and the name that it had.
using NamedSpace = std::pair<NamespaceId, std::string>;

// An operation in a block: views into the block.
struct ChangeRecord {
  ChangeOperation::Kind kind = ChangeOperation::Kind::kSet;
  uint32_t space = 0;  // index in the dictionary
  SequenceNumber version = kNoSequence;
  std::string_view key;
  std::string_view value;
  std::string_view metadata;
  uint64_t expiry_ms = kNoExpiry;
};

// A commit in a block: a view into the block.
struct ChangeCommit {
  SequenceNumber last = kNoSequence;
  uint64_t instant_ms = 0;
  std::string_view operations;
};

struct ChangeBlock {
  SequenceNumber after = kNoSequence;
  SequenceNumber last = kNoSequence;
  uint64_t first_ms = 0;
  uint64_t last_ms = 0;
  uint32_t count = 0;  // of commits
  std::vector<NamedSpace> dictionary;
  std::string commits;

  // Returns about how many bytes the block takes in a file.
  size_t size() const { return kChangeBlockHeaderSize + commits.size(); }
  // Returns whether it covers any version.
  bool covers() const { return last > after; }
};

// Appends an operation of a commit whose last version is `last`.
void AppendChangeRecord(const ChangeRecord& record, SequenceNumber last, std::string* operations);
// Adds the commit of the operations `operations`; without operations the block only covers it.
// Requires: the commit follows those of the block. Throws std::bad_alloc; then nothing has changed.
void AddCommit(const ChangeCommit& commit, ChangeBlock* block);

// These read what begins at `*offset` of the block's commits, or of a commit's operations, and move
// the offset behind it. They return false if the bytes make no sense.
// Requires: the offset is not at the end.
bool ReadCommit(const ChangeBlock& block, size_t* offset, ChangeCommit* commit);
bool ReadChangeRecord(const ChangeCommit& commit, size_t* offset, ChangeRecord* record);

// Returns whether readers of the feed see an operation of the commit.
bool IsSeen(const ChangeCommit& commit);
// Fills `shown`, which is empty, with an operation of the block as readers of the feed see it, if
// `keys_only` without the values and the metadata of keys. Requires: the kind is not kStoresOwn.
void ShowOperation(const ChangeBlock& block, const ChangeRecord& record, bool keys_only,
                   ChangeOperation* shown);

// The header of a block, decoded.
struct ChangeBlockHeader {
  uint32_t payload_size = 0;
  uint32_t dictionary_size = 0;
  SequenceNumber after = kNoSequence;
  SequenceNumber last = kNoSequence;
  uint64_t first_ms = 0;
  uint64_t last_ms = 0;
  uint32_t count = 0;
};

// Returns the bytes of the block for its place in a file.
std::string EncodeChangeBlock(const ChangeBlock& block, uint64_t file_number, uint64_t offset);
// Both return DataLoss, with `path` and the offset, if the bytes are damaged, and
// FailedPrecondition if a later version of the program wrote them.
// Requires: kChangeBlockHeaderSize bytes, or header.payload_size bytes.
[[nodiscard]] absl::StatusOr<ChangeBlockHeader> DecodeChangeBlockHeader(std::string_view bytes,
                                                                        const std::string& path,
                                                                        uint64_t file_number,
                                                                        uint64_t offset);
[[nodiscard]] absl::Status DecodeChangeBlock(const ChangeBlockHeader& header,
                                             std::string_view header_bytes,
                                             std::string_view payload, const std::string& path,
                                             uint64_t file_number, uint64_t offset,
                                             ChangeBlock* block);

}  // namespace varve
