// Checks that separated values are there, and are those that were written: for verifying and
// repairing a store while no server runs on it.
//
// Thread-safety: one thread at a time uses a checker. It keeps the files open that it has looked
// into.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/value_handle.h"
#include "db/segment/segment_builder.h"
#include "type/record.h"
#include "util/os/file_system.h"

namespace varve {

class ValueChecker {
 public:
  ValueChecker(FileSystem* file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}

  // Every byte of the file is known to be good: from here on Check() reads none of its values, and
  // only looks whether they lie within it.
  void Trust(uint64_t file_number) { trusted_.insert(file_number); }
  // OK also where the record holds its value. DataLoss names file and offset of what is damaged or
  // missing.
  [[nodiscard]] absl::Status Check(const RecordView& record);
  // Returns the first damage that a record of the segment leads to.
  [[nodiscard]] absl::Status CheckSegment(const SegmentInfo& info);
  // Returns the large operation at `offset` of a file, which is good until the next call. Nothing:
  // there is none that is undamaged.
  [[nodiscard]] absl::StatusOr<std::optional<RecordView>> OperationAt(uint64_t file_number,
                                                                      uint64_t offset);

 private:
  struct Opened {
    std::unique_ptr<File> file;
    absl::Status status;
  };
  const Opened& Open(uint64_t number);
  static absl::Status CheckPlace(const File& file, const ValueHandle& handle);

  FileSystem* const file_system_;
  const std::string directory_;
  std::map<uint64_t, Opened> files_;
  std::set<uint64_t> trusted_;
  std::string bytes_;
  std::string plain_;
};

}  // namespace varve
