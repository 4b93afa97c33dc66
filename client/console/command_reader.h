// The command reader reads a stream of RESP commands, the format of export, of `redis-cli --pipe`
// and of the AOF of Redis. It passes on commands that write strings or delete. It leaves out and
// counts commands of other types and keys of databases other than 0. It drops MULTI and EXEC, and
// passes the commands between them one by one; it notes a MULTI without an EXEC.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/console/input_file.h"
#include "client/console/record_reader.h"
#include "util/resp/resp_parser.h"

namespace varve {

// Appends SET key value, and PXAT `expiry` where that is not empty.
void AppendRespRecord(std::string_view key, std::string_view value, std::string_view expiry,
                      std::string_view metadata, std::string* out);

// Reads commands from where `input` is.
class CommandReader final : public RecordReader {
 public:
  // `allow_flush`: FLUSHALL and FLUSHDB are passed on; else they are wrong records. `now_ms`: what
  // has expired by then is left out.
  CommandReader(std::unique_ptr<InputFile> input, bool allow_flush, uint64_t now_ms)
      : input_(std::move(input)), allow_flush_(allow_flush), now_ms_(now_ms) {}

  absl::StatusOr<bool> Next(ImportRecord* record) override;
  uint64_t offset() const override { return input_->offset(); }
  bool Seek(uint64_t offset, uint64_t line) override { return input_->Seek(offset); }

 private:
  // The next command's words; false at the end of the file.
  absl::StatusOr<bool> ReadCommand(ImportRecord* record);
  // Returns whether the command is to be sent. It may change the words.
  bool Passes(ImportRecord* record);
  // Looks at the options of a SET; where its time is over, it becomes a DEL.
  void LookAtSet(ImportRecord* record);
  // An EXPIREAT (`unit_ms` 1000) or PEXPIREAT whose time is over becomes a DEL.
  void LookAtExpiry(ImportRecord* record, uint64_t unit_ms);
  // At the end of the file.
  void NoteOpenTransaction();

  const std::unique_ptr<InputFile> input_;
  const bool allow_flush_;
  const uint64_t now_ms_;
  RespParser parser_;
  size_t consumed_ = 0;  // by the record that was handed out last
  std::string other_database_;
  std::optional<uint64_t> transaction_;  // where the MULTI is whose EXEC hasn't come
};

}  // namespace varve
