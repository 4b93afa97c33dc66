// The row codec is how a key of Varve lies in a table of HBase. This file alone knows the bytes.
//
// A row key is four bytes that stand for the place of a namespace's keys (its generation), then the
// user key. Generation 0 holds the rows of the store itself. The four bytes are digits to the base
// of 255, the most significant first, which leave out one byte: in the tables of namespaces that
// are grouped by a delimiter it is that delimiter, so that HBase's split policy finds the first
// delimiter in the user key; elsewhere it is 0xff.
//
// A row has one cell, whose value is
//
//   8  version, big-endian, so that comparing cells compares versions
//   4  id of the writer, which differs from process to process: no two writes make equal cells
//   1  format (high four bits) and flags: 1 tombstone, 2 it expires, 4 it has metadata
//   8  instant of expiry in milliseconds, big-endian, if it expires
//   varint32  size of the metadata, if it has metadata
//   varint32  size of the value
//   the metadata, then the value
//
// What stands before the metadata has at most kMaxCellHeader bytes. A tombstone is a key that was
// deleted: its row stays for a while, so that the version of the next write is a higher one.
//
// The version is HBase's timestamp of the cell, too: HBase shows the cell with the highest one, and
// by the clocks of its own servers an older value could come back when a region moves.
//
// Thread-safety: Functions without state, and plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/hbase_rpc/hbase_client.h"
#include "varve/types.h"

namespace varve {

inline constexpr size_t kRowPrefixSize = 4;
inline constexpr size_t kMaxHbaseKeySize = kHbaseMaxRowSize - kRowPrefixSize;
inline constexpr size_t kMaxCellHeader = 32;
static_assert(kMaxCellHeader <= kHbaseKeysOnlyPrefix);

// Names the generation of a namespace's keys; ascending, and none is given twice.
using HbaseGeneration = uint32_t;
inline constexpr HbaseGeneration kSystemGeneration = 0;
// The last one that any base has digits for.
inline constexpr HbaseGeneration kLastGeneration = 4'228'250'623;

// Returns the first bytes of the rows of a generation. `left_out` does not occur in them.
// Requires: generation <= kLastGeneration + 1.
std::string RowPrefix(HbaseGeneration generation, uint8_t left_out);

// Returns the row right behind all rows that begin with `prefix`.
// Requires: RowPrefix() gave `prefix`.
std::string RowBehindPrefix(std::string_view prefix, uint8_t left_out);

// The state of a key, as a cell holds it. The views point into the cell.
struct HbaseCell {
  SequenceNumber version = kNoSequence;
  uint32_t writer = 0;
  bool is_tombstone = false;
  uint64_t expiry_ms = kNoExpiry;
  std::string_view metadata;
  std::string_view value;
  // The sizes that the header names, also where a cell was cut behind it.
  uint32_t metadata_size = 0;
  uint32_t value_size = 0;

  // Returns whether a reader at this instant finds nothing: the key was deleted, or its time is
  // over.
  bool IsGone(uint64_t now_ms) const { return is_tombstone || IsExpired(now_ms); }
  bool IsExpired(uint64_t now_ms) const { return expiry_ms != kNoExpiry && expiry_ms <= now_ms; }
};

// Ignores `metadata_size` and `value_size`.
std::string EncodeCell(const HbaseCell& cell);

// Returns nothing if the bytes are no cell of this format.
std::optional<HbaseCell> DecodeCell(std::string_view bytes);
// Does so for a cell of which there may be only the first kMaxCellHeader bytes; the metadata and
// the value of the result are empty.
std::optional<HbaseCell> DecodeCellHeader(std::string_view bytes);

// Returns tests that those cells pass which are gone at this instant, and no others.
std::vector<HbaseValueTest> TestsOfGone(uint64_t now_ms);

// The first bytes of every cell of this version, and of this very cell.
inline constexpr size_t kCellVersionSize = 8;
inline constexpr size_t kCellIdentitySize = 12;
std::string CellVersionBytes(SequenceNumber version);

}  // namespace varve
