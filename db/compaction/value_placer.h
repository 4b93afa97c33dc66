// The value writer decides where the values go that a job writes: a flush leaves large ones where
// the log wrote them, or writes them into a value file; a collection moves those of chosen files
// into a new one. Everything else stays as it is.
//
// The value files written are on disk once Finish() has returned OK. Before that they are orphans,
// which the next open removes. They are removed with the writer unless Keep() was called.
//
// Thread-safety: one job on one thread uses a writer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/value_place.h"
#include "db/log/large_blocks.h"
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

  // Adds a whole large operation and returns its place.
  [[nodiscard]] absl::StatusOr<ValuePlace> Add(std::string_view operation, uint32_t value_size);
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

class ValuePlacer {
 public:
  virtual ~ValuePlacer() = default;
  // Returns what is to be written for the record: the record, or one that says where its value is.
  // Views are good until the next call.
  [[nodiscard]] virtual absl::StatusOr<RecordView> Place(const RecordView& record) = 0;
  [[nodiscard]] virtual absl::Status Finish() = 0;
  virtual void Keep() = 0;
  virtual uint64_t bytes_written() const = 0;
};

struct FlushPlacement {
  // Returns the bytes from which on a value of the generation is kept apart; 0: none is.
  std::function<uint64_t(NamespaceGeneration)> separation_size;
  // The places of the log's blocks; empty: values are not left there.
  std::vector<LogBlockPlace> log_blocks;
};
std::unique_ptr<ValuePlacer> NewFlushPlacer(FlushPlacement placement,
                                            ValueFileWriter::Options files);
// Moves what lies in the files numbered `emptied`, ascending.
std::unique_ptr<ValuePlacer> NewCollectingPlacer(std::vector<uint64_t> emptied,
                                                 ValueFileWriter::Options files);

}  // namespace varve
