// Writes a new file from its start to its end, so that it goes to disk while it grows.
//
// What is appended gathers in a buffer, which goes out in whole pages: a page that is written to
// later would go to disk twice. After an error of the disk status() and all further writes fail.
// The file is a new one, or a spare one that is written over (util/os/spare_files.h).
//
// Thread-safety: a writer belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/os/file_system.h"
#include "util/os/spare_files.h"

namespace varve {

class FileWriter {
 public:
  // Writes over one of the spares, null for none, if there is one for about `expected_size` bytes.
  // Requires: the file system and the spares outlive the writer.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<FileWriter>> Create(
      FileSystem* file_system, const std::string& path, SpareFiles* spares = nullptr,
      uint64_t expected_size = 0);
  // Removes the file unless Keep() was called.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  const std::string& path() const { return path_; }
  const absl::Status& status() const { return status_; }
  // Bytes of the file so far.
  uint64_t size() const { return written_ + buffer_.size(); }
  // To be appended to, and then WriteFull() to be called.
  std::string* buffer() { return &buffer_; }
  // Writes what makes whole pages, if that is enough for a step.
  [[nodiscard]] absl::Status WriteFull() {
    return buffer_.size() >= kStep ? WritePages() : absl::OkStatus();
  }
  // Appends bytes too many to go through the buffer.
  [[nodiscard]] absl::Status Append(std::string_view bytes);
  // The file ends here, and is on disk; its name is not.
  [[nodiscard]] absl::Status Finish();
  // It stays.
  void Keep() { kept_ = true; }

 private:
  // The step in which the file goes to disk. Larger ones hold up the log's syncs: the p99 of
  // pipelined writes was 4.6 ms when files were synced in one go at their end, 4.1 ms in steps of 1
  // MiB, 3.0 ms in steps of 256 KiB, no better below.
  static constexpr size_t kStep = size_t{256} << 10;

  FileWriter(FileSystem* file_system, std::string path);
  absl::Status WritePages();
  absl::Status Write(std::string_view bytes);
  // Cuts off what the file held before, and puts it on disk.
  absl::Status End();
  // Tells the spares that nothing is left of what the file held before.
  void IsClean();

  FileSystem* const file_system_;
  const std::string path_;
  std::unique_ptr<File> file_;
  SpareFiles* spares_ = nullptr;  // that the file is from, until it is clean
  uint64_t old_size_ = 0;         // of what the file held before
  absl::Status status_;           // the first error of the disk
  std::string buffer_;
  uint64_t written_ = 0;
  bool kept_ = false;
};

}  // namespace varve
