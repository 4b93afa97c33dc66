// Records for tests of the log, and what recovery makes of a directory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "db/log/log.h"
#include "db/log/log_recovery.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"

namespace varve::testing {

inline constexpr uint64_t kTestStore = 0x5EED;

// A batch record whose operations are the bytes of `operations`: the log does not look inside.
inline std::string MakeRecord(SequenceNumber first, std::string_view operations,
                              uint32_t count = 1) {
  std::string record(kBatchHeaderSize, '\0');
  record += operations;
  SealBatch(first, count, HashOperations(operations), &record);
  return record;
}

struct Replayed {
  absl::Status status;
  LogRecovery recovery;
  std::vector<std::pair<SequenceNumber, std::string>> batches;  // first sequence, operations
};

inline Replayed Replay(const std::string& directory, SequenceNumber flushed = 0,
                       const std::vector<LogEnd>& known_ends = {},
                       FileSystem* file_system = PosixFileSystem()) {
  Replayed replayed;
  auto recovery =
      RecoverLog(file_system, directory, kTestStore, flushed, known_ends,
                 [&](std::string_view operations, SequenceNumber first, uint32_t count) {
                   replayed.batches.emplace_back(first, std::string(operations));
                   return absl::OkStatus();
                 });
  replayed.status = recovery.status();
  if (recovery.ok()) replayed.recovery = *std::move(recovery);
  return replayed;
}

// A log and the sequence that goes with it. One operation a batch, unless said otherwise.
class LogUser {
 public:
  explicit LogUser(const std::string& directory, size_t file_size = 1u << 20,
                   SequenceNumber last = 0, uint64_t file_number = 1,
                   FileSystem* file_system = PosixFileSystem())
      : last_(last) {
    options_.directory = directory;
    options_.store_id = kTestStore;
    options_.file_size = file_size;
    file_system_ = file_system;
    file_number_ = file_number;
  }

  LogOptions& options() { return options_; }
  void Open() {
    auto opened = Log::Open(file_system_, options_, file_number_, last_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
  }
  Log& log() { return *log_; }
  SequenceNumber last() const { return last_; }
  void Drop() { log_.reset(); }

  absl::Status Add(std::string_view operations, Durability durability = Durability::kAlways,
                   uint32_t count = 1, bool for_deletes = false) {
    if (absl::Status status = log_->Reserve(kBatchHeaderSize + operations.size(), for_deletes);
        !status.ok())
      return status;
    const std::string record = MakeRecord(last_ + 1, operations, count);
    if (absl::Status status = log_->Append(record, last_ + 1, last_ + count, durability);
        !status.ok())
      return status;
    last_ += count;
    return absl::OkStatus();
  }
  // One group: appended, pushed and durable.
  absl::Status Commit(std::string_view operations, uint32_t count = 1) {
    if (absl::Status status = Add(operations, Durability::kAlways, count); !status.ok())
      return status;
    if (absl::Status status = log_->Push(); !status.ok()) return status;
    return log_->WaitUntilDurable(last_);
  }

 private:
  LogOptions options_;
  FileSystem* file_system_;
  uint64_t file_number_;
  SequenceNumber last_;
  std::unique_ptr<Log> log_;
};

// What a killed process leaves: everything that the kernel was given.
inline void CopyDirectory(const std::string& from, const std::string& to) {
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    std::error_code gone;  // a file may be renamed meanwhile
    std::filesystem::copy_file(entry.path(), std::filesystem::path(to) / entry.path().filename(),
                               std::filesystem::copy_options::overwrite_existing, gone);
  }
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
}

}  // namespace varve::testing
