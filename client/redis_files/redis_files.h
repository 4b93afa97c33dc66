// The files that a Redis leaves on disk, read as one stream of commands: an RDB file, an AOF (also
// one that begins with an RDB), or the directory of a multi-part AOF (Redis 7), whose manifest
// names the files and their order.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/console/command_reader.h"
#include "client/console/input_file.h"
#include "client/console/record_reader.h"
#include "util/redis_format/rdb_reader.h"

namespace varve {

class RedisFilesReader final : public RecordReader {
 public:
  // `path` is a file, a manifest (its name ends in .manifest), or a directory with one manifest in
  // it or in its "appendonlydir".
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<RedisFilesReader>> Open(
      const std::string& path, bool allow_flush, uint64_t now_ms);

  absl::StatusOr<bool> Next(ImportRecord* record) override;
  uint64_t offset() const override;
  // Bytes of all files together.
  uint64_t size() const { return size_; }

 private:
  RedisFilesReader(std::vector<std::string> paths, bool allow_flush, uint64_t now_ms)
      : paths_(std::move(paths)), allow_flush_(allow_flush), now_ms_(now_ms) {}

  absl::Status BeginFile();
  void EndFile();
  // Reads the next string of the default database as a SET. False: the RDB part ends.
  absl::StatusOr<bool> NextOfRdb(ImportRecord* record);
  // Returns whether the item becomes a record, and notes it if not.
  bool Takes(const RdbItem& item);

  const std::vector<std::string> paths_;
  const bool allow_flush_;
  const uint64_t now_ms_;
  uint64_t size_ = 0;
  size_t next_file_ = 0;
  uint64_t base_ = 0;                 // bytes of the files before
  std::unique_ptr<InputFile> input_;  // while its RDB part is read
  std::unique_ptr<RdbReader> rdb_;
  std::string expiry_text_;                  // of the key that was read last
  std::unique_ptr<CommandReader> commands_;  // owns the file after that
};

}  // namespace varve
