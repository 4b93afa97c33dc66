// The position of an archive: how far it has come. It lies as the file LAST in the archive's
// directory, is replaced after each change file, and tells that the newest file is missing, which
// no other file could.
//
// It is text, a line for each entry:
//
//   varve-archive-last 1
//   history <16 hexadecimal digits>
//   base 20261125T193300Z-1234
//   number 7                              of the newest change file; 0: there was none yet
//   version 1300
//   instant_ms 1764099190000              of that version
//   current_ms 1764099200000              nothing later than the version had come until then
//   predecessor <16 hexadecimal digits>   XXH3-64 of the newest change file, or of the base's list
//                                         if there is none since the base
//   checksum <16 hexadecimal digits>      XXH3-64 of everything before this line
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "varve/types.h"

namespace varve {

struct ArchivePosition {
  uint64_t history_id = 0;
  std::string base;
  uint64_t number = 0;
  SequenceNumber version = kNoSequence;
  uint64_t instant_ms = 0;
  uint64_t current_ms = 0;
  uint64_t predecessor = 0;

  friend bool operator==(const ArchivePosition&, const ArchivePosition&) = default;
};

std::string EncodeArchivePosition(const ArchivePosition& position);
// Returns DataLoss, with `path`, for whatever EncodeArchivePosition() does not write, and
// FailedPrecondition if a later version of Varve has written it.
[[nodiscard]] absl::StatusOr<ArchivePosition> DecodeArchivePosition(std::string_view text,
                                                                    const std::string& path);

}  // namespace varve
