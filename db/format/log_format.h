// The log format is what stands in the log's files (the field's write-ahead log, WAL). Numbers are
// little-endian; checksums are XXH3-64's low 32 bits.
//
// File `NNNNNN.log`: a header page, then blocks. The log prepares a file before it uses it
// (db/log/log_file_maker.h), so that writing a block changes no metadata. Until the file is
// prepared its name ends in `.log.tmp`.
//
//   header page, 4096 bytes, the rest zero:
//      0   8  magic "VARVELOG"
//      8   4  format version: 4; or 3, which has no time marks, in a store whose manifest has an
//          earlier version than 5. Read, too: 2, which has no large operations, and 1, which also
//          ends with the store id
//     12   4  checksum of bytes 0..12 and 16..40
//     16   8  epoch: the file's number; blocks of an earlier life carry another
//     24   8  store id
//     32   8  bytes of the file when it was prepared: it may grow, but a shorter one was cut
//
//   block: what one write puts into the file. A block starts at a multiple of 8; after a sync it
//   starts at a multiple of 4096, so that the log never writes a sector again that it has
//   acknowledged. Nobody reads the space between.
//      0   4  checksum of bytes 4..40, seeded with store id and place: a copy elsewhere (in a
//          value, say) is no block
//      4   4  payload size in bytes, without padding; 0 for a block that only brings the durable
//          mark up to date
//      8   8  epoch
//     16   8  sequence of the first operation
//     24   8  sequence of the last operation (first - 1 if there is none)
//     32   8  durable mark: durable_sequence when this block was issued
//     40   .  batch records, back to back
//
//   batch record: one WriteBatch, whole or not at all.
//      0   4  checksum of bytes 4..20, seeded with the XXH3-64 of the operations (sealed and read
//          by db/format/batch_codec.h)
//      4   4  size of the operations in bytes
//      8   8  sequence of the first operation; operation i has sequence + i
//     16   4  number of operations; bit 31: some of them are large ones (db/format/batch_codec.h
//          has what is hashed then)
//     20   .  operations, back to back
//
//   time mark: stands in the place of a batch record, right before one, and says when that one and
//   what follows were committed at the earliest (db/history/time_map.h).
//      0   4  checksum, as of a batch record
//      4   4  8
//      8   8  sequence of the first operation behind the mark
//     16   4  2^30
//     20   8  instant, in ms since the epoch
//
//   operation:
//      0   1  RecordKind | RecordFlags
//      1   v  varint32 key size, varint32 value size
//      .   8  expiry in ms since the epoch           (kHasExpiry)
//      .   v  varint32 size and bytes of metadata    (kHasMetadata)
//      .      key (tree key), value
//   A large value's operation has a form of its own (db/format/large_operation.h), so that segments
//   can point to it.
//
// Recovery reads files in order of number and blocks in order of offset, each continuing the
// sequence of the one before. Torn is not corrupt: where a block or batch is damaged or ends, and
// `next` is the sequence expected there,
//   - within what the manifest records as the good part of this file: corruption;
//   - a later file that begins with `next` says that the file was full or that an earlier recovery
//     cut here: recovery goes on there;
//   - any later block of this or a later file whose durable mark is >= `next` says that `next` had
//     been acknowledged: corruption;
//   - otherwise it is a tear: recovery cuts the file here.
// Recovery does not need what flushes have put into segments: `next` counts as at least the first
// sequence that no flush has covered.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "util/base/coding.h"
#include "varve/types.h"

namespace varve {

inline constexpr char kLogMagic[8] = {'V', 'A', 'R', 'V', 'E', 'L', 'O', 'G'};
inline constexpr uint32_t kLogFormatVersion = 4;
inline constexpr uint32_t kLogFormatWithoutTime = 3;
inline constexpr size_t kLogPageSize = 4096;
inline constexpr size_t kLogHeaderSize = 40;  // bytes of the header page before the zeros
inline constexpr size_t kLogBlockHeaderSize = 40;
inline constexpr size_t kLogBlockAlignment = 8;
inline constexpr size_t kBatchHeaderSize = 20;
inline constexpr size_t kTimeMarkSize = kBatchHeaderSize + 8;

constexpr uint64_t LogPageAlign(uint64_t offset) {
  return (offset + kLogPageSize - 1) & ~uint64_t{kLogPageSize - 1};
}
constexpr uint64_t LogBlockAlign(uint64_t offset) {
  return (offset + kLogBlockAlignment - 1) & ~uint64_t{kLogBlockAlignment - 1};
}

// Names of log files: 7 -> "000007.log" and "000007.log.tmp". The Parse functions return nothing
// for other names.
std::string LogFileName(uint64_t number);
std::string LogTemporaryName(uint64_t number);
std::optional<uint64_t> ParseLogFileName(std::string_view name);
std::optional<uint64_t> ParseLogTemporaryName(std::string_view name);

// Returns the header page (kLogPageSize bytes) of file `number`, which has `file_size` bytes.
std::string EncodeLogHeaderPage(uint64_t number, uint64_t store_id,
                                uint64_t file_size = kLogPageSize,
                                uint32_t version = kLogFormatVersion);
// Checks what the first page of file `number` holds (fewer bytes if the file is shorter). Returns
// NotFound if the page was never written (it is cut short or zero), DataLoss if it is damaged, and
// FailedPrecondition if the file belongs to another store or a later version has written it.
[[nodiscard]] absl::Status CheckLogHeaderPage(std::string_view page, const std::string& path,
                                              uint64_t number, uint64_t store_id);
// Returns the id of the store that wrote the page; nothing if the page is damaged.
std::optional<uint64_t> StoreIdOfLogHeaderPage(std::string_view page);
// Returns the size that a checked page says its file has at least; 0 if it doesn't say.
uint64_t PreparedLogSize(std::string_view page);

struct LogBlockHeader {
  uint32_t payload_size = 0;
  uint64_t epoch = 0;
  SequenceNumber first = 0;
  SequenceNumber last = 0;
  SequenceNumber durable_mark = 0;
};

// Writes kLogBlockHeaderSize bytes at `destination` for the block that will lie at `offset` of its
// file.
void EncodeLogBlockHeader(char* destination, const LogBlockHeader& header, uint64_t store_id,
                          uint64_t offset);
// Returns the checksum that the kLogBlockHeaderSize bytes `header` at `offset` must have.
uint32_t LogBlockChecksum(std::string_view header, uint64_t store_id, uint64_t offset);
// Does the same as DecodeLogBlockHeader.
// Requires: `bytes` are at least kLogBlockHeaderSize and carry `epoch`.
std::optional<LogBlockHeader> DecodeHeaderOfEpoch(std::string_view bytes, uint64_t epoch,
                                                  uint64_t store_id, uint64_t offset);
// Decodes the header at the front of `bytes`, which lie at `offset` of file `epoch`; returns
// nothing if there is none of that epoch and place.
inline std::optional<LogBlockHeader> DecodeLogBlockHeader(std::string_view bytes, uint64_t epoch,
                                                          uint64_t store_id, uint64_t offset) {
  // Comparing the epoch first is cheap for a caller that tries every 8 bytes of a file.
  if (bytes.size() < kLogBlockHeaderSize || DecodeFixed64(bytes.data() + 8) != epoch)
    return std::nullopt;
  return DecodeHeaderOfEpoch(bytes, epoch, store_id, offset);
}

}  // namespace varve
