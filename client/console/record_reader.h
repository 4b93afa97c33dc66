// A record reader turns files of one kind into a stream of commands for the server; import reads
// through it.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

// One command, such as SET key value. Views are valid until the next call of the reader.
struct ImportRecord {
  std::vector<std::string_view> words;
  uint64_t offset = 0;     // where it begins in the input
  uint64_t line = 0;       // from 1 on; 0 where the format has no lines
  bool repeatable = true;  // executing it twice, in order with the others, is as good as once
  // Not empty: this record can't be read, and why; the next one may be fine.
  std::string wrong;
};

// The notes of a reader on what it left out and what it changed.
struct ImportNotes {
  // "hash", "command HSET", "key of another database" -> how many.
  std::map<std::string, uint64_t> left_out;
  uint64_t with_expiry = 0;  // that are to expire
  uint64_t expired = 0;      // left out, as their time is over
  std::string warning;       // about the file as a whole, such as a cut end
  // A MULTI here has no EXEC: what follows it was never executed.
  std::optional<uint64_t> open_transaction;
};

class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // The next record; false at the end. DataLoss: the rest can't be read.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(ImportRecord* record) = 0;
  // How far it has read, in bytes of the input (of all its files).
  virtual uint64_t offset() const = 0;
  virtual uint64_t line() const { return 0; }
  // Goes to where an earlier reader's record began; false: not here, read and skip instead.
  virtual bool Seek(uint64_t offset, uint64_t line) { return false; }

  const ImportNotes& notes() const { return notes_; }

 protected:
  ImportNotes notes_;
};

}  // namespace varve
