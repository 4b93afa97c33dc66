// Value separation decides where each value that a flush or a merge writes is stored. A flush
// leaves a large value where the log wrote it, or writes it into a value file; the segment gets a
// value handle. A collection moves the values of chosen files into a new value file. Every other
// value stays in its record. Both compress what they write into value files as the policy says, a
// flush with a cheaper level of zstd where that costs little space; it leaves no value in the log
// that is smaller compressed.
//
// The value files that a job wrote are on disk once Finish() has returned OK. Until a manifest
// names them they are orphans, which the next open removes. The destructor removes them unless the
// job called Keep().
//
// Thread-safety: one job on one thread uses an object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/value_handle.h"
#include "db/log/large_blocks.h"
#include "db/namespaces/compression_policy.h"
#include "db/values/value_file.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "util/os/file_system.h"
#include "util/os/file_writer.h"

namespace varve {

// Writes large operations into value files, one after the other.
class ValueFileWriter {
 public:
  struct Options {
    FileSystem* file_system = nullptr;
    std::string directory;
    std::function<uint64_t()> next_file_number;
    ValueFiles* registry = nullptr;
  };
  explicit ValueFileWriter(Options options) : options_(std::move(options)) {}
  ~ValueFileWriter();

  // Adds a whole large operation and returns its handle.
  [[nodiscard]] absl::StatusOr<ValueHandle> Add(std::string_view operation, uint32_t value_size);
  // Puts everything on disk, and the files into the registry.
  [[nodiscard]] absl::Status Finish();
  // Keeps the files, because segments point into them.
  void Keep() { kept_ = true; }
  // Returns the bytes of the files that are whole.
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  absl::Status Begin();
  absl::Status EndFile();

  const Options options_;
  std::unique_ptr<FileWriter> file_;
  uint64_t number_ = 0;
  uint64_t bytes_written_ = 0;
  std::vector<std::shared_ptr<ValueFile>> files_;
  std::vector<std::string> paths_;  // whole files
  bool kept_ = false;
};

class ValueSeparation {
 public:
  virtual ~ValueSeparation() = default;
  // Returns the record that the job writes in place of `record`: the same one, or one whose value
  // is a value handle. Its views are valid until the next call.
  [[nodiscard]] virtual absl::StatusOr<RecordView> Separate(const RecordView& record) = 0;
  [[nodiscard]] virtual absl::Status Finish() = 0;
  virtual void Keep() = 0;
  virtual uint64_t bytes_written() const = 0;
};

struct FlushSeparationOptions {
  // Returns the bytes from which on a value of the generation is kept apart; 0: none is.
  std::function<uint64_t(NamespaceGeneration)> separation_size;
  // The places of the log's blocks that hold large values. Empty: the flush leaves no value in the
  // log.
  std::vector<LogBlockPlace> log_blocks;
  CompressionPolicy compression;
};
std::unique_ptr<ValueSeparation> NewFlushSeparation(FlushSeparationOptions options,
                                                    ValueFileWriter::Options files);
// Moves the values that lie in the files numbered `emptied`, ascending.
std::unique_ptr<ValueSeparation> NewCollectionSeparation(std::vector<uint64_t> emptied,
                                                         ValueFileWriter::Options files,
                                                         CompressionPolicy compression = {});

}  // namespace varve
